//! What prefill costs, and what a block weighs.

use oracle::BlockMemory;
use roofline::{
    Gpu, Model, PrefixMemory, PricedCost, calibrated_cost_model, read_calibration, read_gpu,
    read_model,
};
use trace::Workload;

use crate::error::ExperimentError;

/// A model on a GPU under a cost model.
#[derive(Clone, Debug)]
pub struct Pricing {
    /// The model.
    pub model: Model,
    /// The GPU.
    pub gpu: Gpu,
    /// The cost model for both.
    pub cost: PricedCost,
    /// What a cache has to hold.
    pub memory: PrefixMemory,
}

impl Pricing {
    /// The model, GPU and cost model of those names. The model may also be the path of a Hugging Face `config.json`,
    /// the GPU that of a TOML file.
    ///
    /// # Errors
    /// If there is none of a name (the error lists the names), or the model keeps no KV per token.
    pub fn named(model: &str, gpu: &str, cost: &str) -> Result<Self, ExperimentError> {
        Self::calibrated(model, gpu, cost, None)
    }

    /// The same with the efficiencies of a calibration: a compiled-in one, or the path of a TOML file; without one, the GPU's own.
    ///
    /// # Errors
    /// As [`Self::named`].
    pub fn calibrated(
        model: &str,
        gpu: &str,
        cost: &str,
        calibration: Option<&str>,
    ) -> Result<Self, ExperimentError> {
        let model = read_model(model)?;
        let gpu = read_gpu(gpu)?;
        let calibration = calibration.map(read_calibration).transpose()?;
        let cost = calibrated_cost_model(cost, &model, &gpu, calibration.as_ref())?;
        let memory = model.prefix_memory();
        if memory.kv_bytes_per_token == 0 {
            return Err(ExperimentError::NoKv { model: model.name });
        }
        Ok(Self {
            model,
            gpu,
            cost,
            memory,
        })
    }

    /// KV bytes of one block of a trace.
    pub fn block_bytes(&self, workload: &Workload) -> u64 {
        self.memory.kv_bytes_per_token * u64::from(workload.block_tokens())
    }

    /// What the model keeps for a block of a trace, and for a saved state.
    pub(crate) fn block_memory(&self, workload: &Workload) -> BlockMemory {
        BlockMemory {
            block_bytes: self.block_bytes(workload),
            state: self.memory.state,
        }
    }

    /// Refuses a model that resumes only from saved states.
    ///
    /// # Errors
    /// If it does; the error says what is not for such models.
    pub fn need_kv_per_token(&self, what: &'static str) -> Result<(), ExperimentError> {
        match self.memory.state {
            None => Ok(()),
            Some(_) => Err(ExperimentError::NeedsKvPerToken {
                what,
                model: self.model.name.clone(),
            }),
        }
    }
}
