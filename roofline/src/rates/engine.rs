//! What a serving engine adds to the kernels of its passes.

use serde::{Deserialize, Serialize};

use crate::units::SECONDS_PER_US;

/// Prompt tokens of a pass past which several GPUs take longer than their kernels.
const LONG_TOKENS: f64 = 2048.0;

/// What one version of an engine adds to the sum of the kernels of its passes.
///
/// `t = ((passes * floor_us)^4 + (slowdown * kernels + long + batched)^4)^(1/4)`: the host launches the kernels of a pass no
/// faster than `floor_us`; `long = long_us * max(0, tokens - 2048) * (gpus - 1) / gpus`; `batched = batched_us * tokens` for
/// a batch of several prompts. The fourth root is two square roots, which IEEE 754 rounds exactly: time does not fall by a
/// rounding error where its terms grow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineRates {
    /// The engine.
    pub engine: String,
    /// Its version.
    pub version: String,
    /// Microseconds below which a pass does not go.
    pub floor_us: f64,
    /// Factor on the kernels.
    pub slowdown: f64,
    /// Microseconds per token past 2,048 and share of other GPUs.
    pub long_us: f64,
    /// Microseconds per token of a batch.
    pub batched_us: f64,
}

/// Passes of a model as an engine runs them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnginePasses {
    /// How many.
    pub passes: f64,
    /// Prompt tokens that they compute.
    pub prompt_tokens: f64,
    /// Those of them past the first 2,048 of a pass (`long_tokens`).
    pub long_tokens: f64,
    /// A pass computes several prompts.
    pub batched: bool,
    /// Tensor-parallel GPUs.
    pub gpus: f64,
    /// Sum of the calibrated kernels.
    pub kernel_seconds: f64,
}

/// Prompt tokens of one pass that count as `long`.
pub(crate) fn long_tokens(prompt_tokens: f64) -> f64 {
    (prompt_tokens - LONG_TOKENS).max(0.0)
}

impl EnginePasses {
    /// One pass over that many tokens of `prompts` prompts.
    pub fn one(prompt_tokens: f64, prompts: f64, gpus: u32, kernel_seconds: f64) -> Self {
        Self {
            passes: 1.0,
            prompt_tokens,
            long_tokens: long_tokens(prompt_tokens),
            batched: prompts > 1.0,
            gpus: f64::from(gpus),
            kernel_seconds,
        }
    }
}

impl EngineRates {
    /// Seconds that the passes take, engine included.
    pub fn seconds(&self, of: &EnginePasses) -> f64 {
        let floor = SECONDS_PER_US * self.floor_us * of.passes;
        let fourth = |x: f64| (x * x) * (x * x);
        (fourth(floor) + fourth(self.device_seconds(of)))
            .sqrt()
            .sqrt()
    }

    /// The same without the floor: what is proportional to the work.
    pub(crate) fn device_seconds(&self, of: &EnginePasses) -> f64 {
        let long = of.long_tokens * (of.gpus - 1.0) / of.gpus;
        let batched = if of.batched { of.prompt_tokens } else { 0.0 };
        let added = SECONDS_PER_US * (self.long_us * long + self.batched_us * batched);
        self.slowdown * of.kernel_seconds + added
    }
}
