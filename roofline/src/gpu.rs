use serde::{Deserialize, Serialize};

use crate::{Model, RooflineError};

/// Part of device memory that a serving engine fills (vLLM's default `gpu_memory_utilization`).
const USABLE_MEMORY: f64 = 0.9;

/// One GPU, by its datasheet. GB = 1e9 bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Preset name.
    pub name: String,
    /// Where the peaks come from.
    pub source: String,
    /// Dense fp16/bf16 tensor peak, FLOP/s.
    pub peak_flops: f64,
    /// Fraction of the peak that the `course` cost models assume is reached, whatever the shape.
    pub utilisation: f64,
    /// Device memory bandwidth, bytes/s.
    pub memory_bandwidth: f64,
    /// Device memory, bytes.
    pub memory_bytes: f64,
    /// Device memory left for KV, bytes, where it is a stated constant and not what the weights leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_bytes: Option<f64>,
}

#[derive(Deserialize)]
struct Presets {
    gpu: Vec<Gpu>,
}

impl Gpu {
    /// The preset of that name.
    ///
    /// # Errors
    /// [`RooflineError::UnknownName`] lists the presets.
    pub fn named(name: &str) -> Result<Self, RooflineError> {
        let presets = Self::presets()?;
        let found = presets.iter().find(|g| g.name == name).cloned();
        found.ok_or_else(|| {
            RooflineError::unknown("GPU", name, presets.iter().map(|g| g.name.as_str()), "")
        })
    }

    /// All presets, in the order of their file.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if the compiled-in file is not well formed.
    pub fn presets() -> Result<Vec<Self>, RooflineError> {
        let file: Presets = toml::from_str(include_str!("gpus.toml"))
            .map_err(|e| RooflineError::invalid("gpus.toml", e.to_string()))?;
        Ok(file.gpu)
    }

    /// FLOP/s that the `course` cost models count on: peak times utilisation.
    pub fn course_flops(&self) -> f64 {
        self.peak_flops * self.utilisation
    }

    /// Bytes left for KV beside the weights of `model`; 0 where they do not fit.
    pub fn memory_for_kv(&self, model: &Model) -> f64 {
        let left = USABLE_MEMORY * self.memory_bytes - model.weight_bytes();
        self.kv_bytes.unwrap_or(left).max(0.0)
    }
}
