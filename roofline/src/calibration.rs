//! A calibration: the efficiencies of one GPU, as a TOML file holds them.

use serde::{Deserialize, Serialize};

use crate::error::RooflineError;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::model::{LayerGroup, Mixer, Mlp, Model, Precision};
use crate::rates::decode::DecodeRates;
use crate::rates::engine::EngineRates;
use crate::rates::gemm::GemmRates;
use crate::rates::prefill::PrefillRates;
use crate::rates::transfer::{AllReduceRates, HostRates, StreamRates};

/// The compiled-in calibrations; `roofline fit` remakes them from the measurements.
const PRESETS: &[&str] = &[
    include_str!("../data/calibrations/a100-vllm.toml"),
    include_str!("../data/calibrations/a100-splitwise.toml"),
    include_str!("../data/calibrations/h100-vllm.toml"),
    include_str!("../data/calibrations/h100-flash2.toml"),
    include_str!("../data/calibrations/h100-splitwise.toml"),
    include_str!("../data/calibrations/rtx-pro-6000-vllm.toml"),
];

/// Efficiencies of one GPU under one software stack, fitted to measurements. A TOML file.
///
/// Efficiencies are fractions of datasheet peaks, so a calibration can stand in for a GPU that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// What it is called: the GPU and the stack, or the path of its file.
    pub name: String,
    /// Name of the GPU preset that was measured.
    pub gpu: String,
    /// The software whose kernels were measured.
    pub stack: String,
    /// What each part was fitted to, one line per fitted operator.
    pub fitted: Vec<FitSource>,
    /// Matrix products.
    pub gemm: GemmRates,
    /// Prefill attention.
    pub prefill_attention: PrefillRates,
    /// Decode attention.
    pub decode_attention: DecodeRates,
    /// Norms, activations, rotary embedding.
    pub elementwise: StreamRates,
    /// Tensor-parallel sums.
    pub all_reduce: AllReduceRates,
    /// Copies between device and host.
    pub host_copy: HostRates,
    /// What the serving engine adds on top, where whole-model times were measured; else nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineRates>,
}

/// What one operator's parameters were fitted to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FitSource {
    /// The operator, as in measurement files.
    pub operator: String,
    /// The measurements.
    pub source: String,
    /// Distinct shapes.
    pub shapes: usize,
    /// Median of `|fitted - measured| / measured` over those shapes.
    pub median_error: f64,
}

impl Calibration {
    /// The compiled-in calibration of that name.
    ///
    /// # Errors
    /// [`RooflineError::UnknownName`] lists them; [`RooflineError::Invalid`] if one is not well formed.
    pub fn named(name: &str) -> Result<Self, RooflineError> {
        let presets = Self::presets()?;
        let found = params::find("calibration", &presets, |c| &c.name, name)?;
        Ok(found.clone())
    }

    /// All compiled-in calibrations.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if one is not well formed.
    pub fn presets() -> Result<Vec<Self>, RooflineError> {
        let parse = |text: &&str| Self::from_toml("calibration data file", text);
        PRESETS.iter().map(parse).collect()
    }

    /// The calibration that a file's text holds; errors call the file `place`.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`], which names the key.
    pub fn from_toml(place: &str, text: &str) -> Result<Self, RooflineError> {
        let invalid = |e: toml::de::Error| RooflineError::invalid(place, e.to_string());
        let calibration = toml::from_str(text).map_err(invalid)?;
        let values: toml::Table = toml::from_str(text).map_err(invalid)?;
        match values.iter().find_map(|(key, v)| negative(key, v)) {
            None => Ok(calibration),
            Some(key) => {
                let problem = format!("{key} must be a finite number, 0 or more");
                Err(RooflineError::invalid(place, problem))
            }
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, RooflineError> {
        toml::to_string(self).map_err(|e| RooflineError::invalid("calibration", e.to_string()))
    }

    /// What `model` runs on `gpus` such GPUs that this calibration has no measurement of: priced with the efficiencies of its
    /// nearest kin, so no more than a guess.
    pub fn unmeasured(&self, model: &Model, gpu: &Gpu, gpus: u32) -> Vec<&'static str> {
        let any = |of: fn(&LayerGroup) -> bool| model.groups.iter().any(of);
        let parts = [
            (
                self.gpu != gpu.name && self.name != gpu.calibration,
                "this GPU",
            ),
            (
                model.weight_precision != Precision::Fp16,
                "products with narrow weights",
            ),
            (
                model.kv_precision != Precision::Fp16,
                "attention over a narrow KV cache",
            ),
            (any(|g| matches!(g.mlp, Mlp::Moe { .. })), "experts"),
            (
                any(|g| matches!(g.mixer, Mixer::Mla(_))),
                "latent attention",
            ),
            (
                any(|g| matches!(g.mixer, Mixer::Ssm { .. })),
                "state-space scans",
            ),
            (
                any(|g| {
                    matches!(
                        g.mixer,
                        Mixer::Attention {
                            window: Some(_),
                            ..
                        }
                    )
                }),
                "sliding windows",
            ),
            (
                gpus > 1 && gpu.interconnect_bandwidth.is_none(),
                "all-reduce over PCIe",
            ),
        ];
        let parts = parts.into_iter().filter(|(runs, _)| *runs);
        parts.map(|(_, what)| what).collect()
    }

    /// Seconds that `kernel` takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, kernel: &Kernel) -> f64 {
        match kernel {
            Kernel::Gemm(shape) => self.gemm.seconds(gpu, shape),
            Kernel::Prefill(shape) => self.prefill_attention.seconds(gpu, shape),
            Kernel::Decode(shape) => self.decode_attention.seconds(gpu, shape),
            Kernel::Stream(shape) => self.elementwise.seconds(gpu, shape),
            Kernel::AllReduce(shape) => self.all_reduce.seconds(gpu, shape),
            Kernel::HostCopy(shape) => self.host_copy.seconds(gpu, shape),
        }
    }
}

/// The key of a number that no rate can be, in `value` or below it.
fn negative(key: &str, value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::Float(v) => (!(v.is_finite() && *v >= 0.0)).then(|| key.to_owned()),
        toml::Value::Integer(v) => (*v < 0).then(|| key.to_owned()),
        toml::Value::Table(table) => {
            let mut below = table.iter();
            below.find_map(|(name, v)| negative(&format!("{key}.{name}"), v))
        }
        _ => None,
    }
}
