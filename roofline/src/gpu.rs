//! GPUs, by their datasheets.

use serde::{Deserialize, Serialize};

use crate::error::RooflineError;
use crate::model::Model;

/// Part of device memory that a serving engine fills (vLLM's default `gpu_memory_utilization`).
const USABLE_MEMORY: f64 = 0.9;

/// The data files, in the order in which they are listed. The first is the default.
const PRESETS: &[&str] = &[
    include_str!("../data/gpus/course-h100.toml"),
    include_str!("../data/gpus/a100.toml"),
    include_str!("../data/gpus/h100.toml"),
    include_str!("../data/gpus/h200.toml"),
    include_str!("../data/gpus/b200.toml"),
    include_str!("../data/gpus/l4.toml"),
    include_str!("../data/gpus/rtx-pro-6000.toml"),
    include_str!("../data/gpus/mi300x.toml"),
];

/// One GPU, by its datasheet. GB = 1e9 bytes; FLOP/s are dense, without structured sparsity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Preset name.
    pub name: String,
    /// Where the peaks come from.
    pub source: String,
    /// Dense fp16/bf16 tensor peak, FLOP/s.
    pub peak_flops: f64,
    /// Dense fp8 tensor peak, FLOP/s, where the chip has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_fp8_flops: Option<f64>,
    /// fp32 peak outside the tensor units, FLOP/s.
    pub vector_flops: f64,
    /// Fraction of the peak that the `course` cost models assume is reached, whatever the shape.
    pub utilisation: f64,
    /// Device memory bandwidth, bytes/s.
    pub memory_bandwidth: f64,
    /// Device memory, bytes.
    pub memory_bytes: f64,
    /// Streaming multiprocessors or compute units: how many tiles run at a time.
    pub processors: u32,
    /// Bandwidth to the other GPUs of the node, one way, bytes/s; without one, they talk over the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interconnect_bandwidth: Option<f64>,
    /// Bandwidth to host memory, one way, bytes/s.
    pub host_bandwidth: f64,
    /// Device memory left for KV, bytes, where it is a stated constant and not what the weights leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_bytes: Option<f64>,
    /// Name of the compiled-in calibration whose efficiencies the `roofline` cost model uses, if no other is asked for.
    pub calibration: String,
    /// What that calibration was measured on.
    pub calibrated_on: String,
}

impl Gpu {
    /// The preset of that name.
    ///
    /// # Errors
    /// [`RooflineError::UnknownName`] suggests the nearest preset and lists all.
    pub fn named(name: &str) -> Result<Self, RooflineError> {
        let presets = Self::presets()?;
        let found = params::find("GPU", &presets, |g| &g.name, name)?;
        Ok(found.clone())
    }

    /// All presets.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if a compiled-in file is not well formed.
    pub fn presets() -> Result<Vec<Self>, RooflineError> {
        let parse = |text: &&str| Self::from_toml("GPU data file", text);
        PRESETS.iter().map(parse).collect()
    }

    /// The GPU that a file's text describes, in the format of `data/gpus`; errors call the file `place`.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`], which names the key.
    pub fn from_toml(place: &str, text: &str) -> Result<Self, RooflineError> {
        let gpu: Self =
            toml::from_str(text).map_err(|e| RooflineError::invalid(place, e.to_string()))?;
        let rates = [
            ("peak_flops", gpu.peak_flops),
            ("peak_fp8_flops", gpu.peak_fp8_flops.unwrap_or(1.0)),
            ("vector_flops", gpu.vector_flops),
            ("utilisation", gpu.utilisation),
            ("memory_bandwidth", gpu.memory_bandwidth),
            ("memory_bytes", gpu.memory_bytes),
            ("processors", f64::from(gpu.processors)),
            (
                "interconnect_bandwidth",
                gpu.interconnect_bandwidth.unwrap_or(1.0),
            ),
            ("host_bandwidth", gpu.host_bandwidth),
        ];
        match rates.iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            None => Ok(gpu),
            Some((key, _)) => Err(RooflineError::invalid(
                place,
                format!("{key} must be a finite number above 0"),
            )),
        }
    }

    /// FLOP/s that the `course` cost models count on: peak times utilisation.
    pub fn course_flops(&self) -> f64 {
        self.peak_flops * self.utilisation
    }

    /// FLOP/s of matrix products with weights of that many bytes per element. Weights narrower than one byte are
    /// widened first, so int4 runs at fp16.
    pub fn gemm_flops(&self, weight_bytes: f64) -> f64 {
        if weight_bytes == 1.0 {
            self.peak_fp8_flops.unwrap_or(self.peak_flops)
        } else {
            self.peak_flops
        }
    }

    /// Bytes left for KV beside the weights of `model`; 0 where they do not fit.
    pub fn memory_for_kv(&self, model: &Model) -> f64 {
        let left = USABLE_MEMORY * self.memory_bytes - model.weight_bytes();
        self.kv_bytes.unwrap_or(left).max(0.0)
    }

    /// FLOPs per byte at which arithmetic and device memory take the same time.
    pub fn ridge(&self) -> f64 {
        self.peak_flops / self.memory_bandwidth
    }

    /// Bandwidth between GPUs of a node, one way, bytes/s.
    pub fn peer_bandwidth(&self) -> f64 {
        self.interconnect_bandwidth.unwrap_or(self.host_bandwidth)
    }
}
