//! Attention of one new token per sequence.

use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::kernel::{DecodeAttention, Kernel};
use crate::units::SECONDS_PER_US;

/// Decode attention: memory traffic, plus a cost for every head and sequence, plus a merge of the splits of the
/// context that takes longer the more there are (`merge_us` for every doubling past 256 tokens).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeRates {
    /// Time of an empty kernel, microseconds.
    pub overhead_us: f64,
    /// Fraction of the memory bandwidth that is reached.
    pub bandwidth_efficiency: f64,
    /// Microseconds for every sequence and KV head.
    pub head_us: f64,
    /// See the type, microseconds.
    pub merge_us: f64,
}

impl DecodeRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &DecodeAttention) -> f64 {
        let traffic = shape.bytes() / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        let arithmetic = Kernel::Decode(*shape).flops() / gpu.peak_flops;
        let merge = self.merge_us * (1.0 + shape.context_tokens / 256.0).log2();
        let heads = self.head_us * shape.batch * shape.kv_heads;
        SECONDS_PER_US * (self.overhead_us + merge + heads) + traffic.max(arithmetic)
    }
}
