//! What a serving engine adds to the kernels of a whole prefill.

use serde::{Deserialize, Serialize};

use crate::units::SECONDS_PER_US;

/// Tokens past which a prefill on several GPUs takes longer than its kernels.
const LONG_TOKENS: f64 = 2048.0;

/// What an engine adds to the sum of a prefill's kernels.
///
/// `t = ((floor_us)^3 + (slowdown * kernels + long + batched)^3)^(1/3)`: the host launches kernels no faster than
/// `floor_us`; `long = long_us * max(0, tokens - 2048) * (gpus - 1) / gpus`; `batched = batched_us * tokens` for a
/// batch of several prompts.
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
pub struct WholePrefill {
    /// Prompts times their length.
    pub tokens: f64,
    /// More than one prompt.
    pub batched: bool,
    /// Tensor-parallel GPUs.
    pub gpus: f64,
    /// Sum of the calibrated kernels.
    pub kernel_seconds: f64,
}

impl EngineRates {
    /// Seconds that the prefill takes, engine included.
    pub fn seconds(&self, prefill: &WholePrefill) -> f64 {
        let long = (prefill.tokens - LONG_TOKENS).max(0.0) * (prefill.gpus - 1.0) / prefill.gpus;
        let batched = if prefill.batched { prefill.tokens } else { 0.0 };
        let added = SECONDS_PER_US * (self.long_us * long + self.batched_us * batched);
        let device = self.slowdown * prefill.kernel_seconds + added;
        ((SECONDS_PER_US * self.floor_us).powi(3) + device.powi(3)).cbrt()
    }
}
