//! Which traces, and how their prefill is priced.

use std::path::PathBuf;

use anyhow::{Result, bail};
use replay::TraceRecord;
use roofline::{Gpu, Model, PrefixMemory, PricedCost, cost_model, read_model};
use trace::{LoadOptions, Loaded, Workload};

use crate::progress::progress_bar;

/// Flags that name traces and prices.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// Trace to replay (Parquet); may be given several times.
    #[arg(long = "trace", value_name = "FILE", required = true)]
    pub traces: Vec<PathBuf>,

    /// Tokens of a block. For traces of tokens [default: 16]; traces of blocks bring their own.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub block_tokens: Option<u32>,

    /// Model whose prefill is priced and whose memory fills the cache: a name (`roofline models` lists them), or the path of a
    /// Hugging Face config.json.
    #[arg(long, value_name = "NAME", default_value = "course-7b")]
    pub model: String,

    /// GPU that it runs on (`roofline gpus` lists them).
    #[arg(long, value_name = "NAME", default_value = "course-h100")]
    pub gpu: String,

    /// Cost model.
    #[arg(long, value_name = "NAME", default_value = "course")]
    pub cost: String,
}

/// What prefill costs, and what a block weighs.
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
    /// KV bytes of one block of a trace.
    pub fn block_bytes(&self, workload: &Workload) -> u64 {
        self.memory.kv_bytes_per_token * u64::from(workload.block_tokens())
    }

    /// Refuses a model that resumes only from saved states.
    ///
    /// # Errors
    /// If it does; the error says what is not for such models.
    pub fn need_kv_per_token(&self, what: &str) -> Result<()> {
        if self.memory.state.is_some() {
            bail!(
                "{what} is for models whose KV is per token, and {} resumes only from saved states: use another --model",
                self.model.name
            );
        }
        Ok(())
    }
}

impl Input {
    /// The model, the GPU and the cost model of those names.
    ///
    /// # Errors
    /// If there is none of a name; the error lists the names.
    pub fn pricing(&self) -> Result<Pricing> {
        let model = read_model(&self.model)?;
        let gpu = Gpu::named(&self.gpu)?;
        let cost = cost_model(&self.cost, &model, &gpu)?;
        let memory = model.prefix_memory();
        if memory.kv_bytes_per_token == 0 {
            bail!(
                "{} keeps no KV per token, so that a block would weigh nothing: such models cannot be replayed",
                model.name
            );
        }
        Ok(Pricing {
            model,
            gpu,
            cost,
            memory,
        })
    }

    /// Loads the traces.
    ///
    /// # Errors
    /// If a file cannot be read or is no valid trace.
    pub fn load(&self) -> Result<Vec<Loaded>> {
        let bar = progress_bar(self.traces.len() as u64, "loading traces");
        let options = LoadOptions {
            block_tokens: self.block_tokens,
            ..LoadOptions::default()
        };
        let load_one = |path| {
            let loaded = trace::load(path, &options);
            bar.inc(1);
            loaded
        };
        let traces = self
            .traces
            .iter()
            .map(|path| load_one(path))
            .collect::<Result<Vec<_>, _>>()?;
        bar.finish_and_clear();
        Ok(traces)
    }
}

/// What a report says of a trace.
pub fn trace_record(loaded: &Loaded) -> TraceRecord {
    let workload = &loaded.workload;
    TraceRecord {
        path: loaded.path.display().to_string(),
        xxh3: format!("{:016x}", loaded.xxh3),
        content: loaded.content.name(),
        requests: workload.requests().len(),
        prompt_tokens: workload
            .requests()
            .iter()
            .map(|request| u64::from(request.prompt_tokens))
            .sum(),
        blocks: workload.arena().len() as u64,
        distinct_blocks: workload.distinct_blocks(),
        block_tokens: workload.block_tokens(),
    }
}
