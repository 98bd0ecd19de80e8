use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::rates::{
    AllReduceRates, DecodeRates, GemmRates, HostRates, PrefillRates, Rates, StreamRates,
};
use crate::{Gpu, RooflineError};

/// The calibrations that come with the crate; `roofline fit` remakes them from the measurements.
const FILES: [(&str, &str); 3] = [
    ("a100", include_str!("../data/calibrations/a100.toml")),
    ("h100", include_str!("../data/calibrations/h100.toml")),
    (
        "rtx-pro-6000",
        include_str!("../data/calibrations/rtx-pro-6000.toml"),
    ),
];

/// Efficiencies of one GPU under one software stack, fitted to measurements. A TOML file.
///
/// Efficiencies are fractions of datasheet peaks, so a calibration can stand in for a GPU that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Name of the GPU preset that was measured.
    pub gpu: String,
    /// What each part was fitted to, one line a fitted operator.
    pub fitted: Vec<Provenance>,
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
pub struct Provenance {
    /// The operator, as in measurement files.
    pub operator: String,
    /// The measurements.
    pub source: String,
    /// Distinct shapes.
    pub shapes: usize,
    /// Median of `|fitted - measured| / measured` over those shapes.
    pub median_error: f64,
}

/// What an engine adds to the sum of a prefill's kernels.
///
/// `t = ((floor_us)^3 + (slowdown * kernels + long + batched)^3)^(1/3)`: the host launches kernels no faster than
/// `floor_us`; `long = long_us * max(0, tokens - 2048) * (gpus - 1) / gpus`; `batched = batched_us * tokens` for a batch of
/// several prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRates {
    /// Microseconds below which a pass does not go.
    pub floor_us: f64,
    /// Factor on the kernels.
    pub slowdown: f64,
    /// Microseconds per token past 2,048 and share of other GPUs.
    pub long_us: f64,
    /// Microseconds per token of a batch.
    pub batched_us: f64,
}

/// A whole prefill as an engine runs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WholePass {
    /// Prompts times their length.
    pub(crate) tokens: f64,
    /// More than one prompt.
    pub(crate) batched: bool,
    pub(crate) gpus: f64,
    /// Sum of the calibrated kernels.
    pub(crate) kernels_s: f64,
}

impl Rates for EngineRates {
    type Shape = WholePass;
    const PARAMETERS: &'static [(&'static str, [f64; 3])] = &[
        ("floor_us", [100.0, 50_000.0, 1e6]),
        ("slowdown", [0.5, 1.2, 5.0]),
        ("long_us", [1e-3, 30.0, 1000.0]),
        ("batched_us", [1e-3, 10.0, 1000.0]),
    ];

    fn values(&self) -> Vec<f64> {
        vec![self.floor_us, self.slowdown, self.long_us, self.batched_us]
    }

    fn set(&mut self, values: &[f64]) {
        if let &[floor_us, slowdown, long_us, batched_us] = values {
            *self = Self {
                floor_us,
                slowdown,
                long_us,
                batched_us,
            };
        }
    }

    fn seconds(&self, _gpu: &Gpu, pass: &WholePass) -> f64 {
        let long = (pass.tokens - 2048.0).max(0.0) * (pass.gpus - 1.0) / pass.gpus;
        let batched = if pass.batched { pass.tokens } else { 0.0 };
        let added = 1e-6 * (self.long_us * long + self.batched_us * batched);
        let device = self.slowdown * pass.kernels_s + added;
        ((1e-6 * self.floor_us).powi(3) + device.powi(3)).cbrt()
    }
}

impl Calibration {
    /// The compiled-in calibration of that name.
    ///
    /// # Errors
    /// [`RooflineError::UnknownName`] lists them; [`RooflineError::Invalid`] if it is not well formed.
    pub fn named(name: &str) -> Result<Self, RooflineError> {
        let (file, text) = FILES.iter().find(|(n, _)| *n == name).ok_or_else(|| {
            RooflineError::unknown("calibration", name, FILES.iter().map(|(n, _)| *n), "")
        })?;
        Self::parse(file, text)
    }

    /// Reads a calibration file.
    ///
    /// # Errors
    /// [`RooflineError::Read`] or [`RooflineError::Invalid`], which names the key.
    pub fn read(path: &Path) -> Result<Self, RooflineError> {
        let text = std::fs::read_to_string(path).map_err(|source| RooflineError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&path.display().to_string(), &text)
    }

    fn parse(place: &str, text: &str) -> Result<Self, RooflineError> {
        let calibration: Self =
            toml::from_str(text).map_err(|e| RooflineError::invalid(place, e.to_string()))?;
        let values = calibration.values();
        if values.iter().all(|v| v.is_finite() && *v >= 0.0) {
            Ok(calibration)
        } else {
            Err(RooflineError::invalid(
                place,
                "every rate must be a finite number, 0 or more",
            ))
        }
    }

    /// The file's text.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, RooflineError> {
        toml::to_string(self).map_err(|e| RooflineError::invalid("calibration", e.to_string()))
    }

    /// Every efficiency a plain datasheet figure, every overhead as if it were small: where a fit starts.
    pub(crate) fn start(gpu: &str) -> Self {
        Self {
            gpu: gpu.to_owned(),
            fitted: Vec::new(),
            gemm: start(GemmRates {
                overhead_us: 0.0,
                efficiency: 0.0,
                tile_penalty: 0.0,
                inner_overhead: 0.0,
                bandwidth_efficiency: 0.0,
                split_traffic: 0.0,
                overlap: 0.0,
            }),
            prefill_attention: start(PrefillRates {
                query_tile: 128.0,
                overhead_us: 0.0,
                efficiency: 0.0,
                softmax_flops: 0.0,
                key_overhead: 0.0,
                bandwidth_efficiency: 0.0,
                wave_quantisation: 0.0,
            }),
            decode_attention: start(DecodeRates {
                overhead_us: 0.0,
                bandwidth_efficiency: 0.0,
                head_us: 0.0,
                merge_us: 0.0,
            }),
            elementwise: start(StreamRates {
                overhead_us: 0.0,
                bandwidth_efficiency: 0.0,
            }),
            all_reduce: start(AllReduceRates {
                overhead_us: 0.0,
                per_gpu_us: 0.0,
                bandwidth_efficiency: 0.0,
            }),
            host_copy: start(HostRates {
                overhead_us: 0.0,
                bandwidth_efficiency: 0.0,
            }),
            engine: None,
        }
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

    fn values(&self) -> Vec<f64> {
        [
            self.gemm.values(),
            self.prefill_attention.values(),
            vec![self.prefill_attention.query_tile],
            self.decode_attention.values(),
            self.elementwise.values(),
            self.all_reduce.values(),
            self.host_copy.values(),
            self.engine.as_ref().map(Rates::values).unwrap_or_default(),
        ]
        .concat()
    }
}

fn start<R: Rates>(mut rates: R) -> R {
    let values: Vec<f64> = R::PARAMETERS
        .iter()
        .map(|(_, [_, start, _])| *start)
        .collect();
    rates.set(&values);
    rates
}
