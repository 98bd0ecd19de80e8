//! Kernels that move bytes and compute little: elementwise work, all-reduce, host copies.

use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::kernel::{AllReduce, HostCopy, Stream};
use crate::units::SECONDS_PER_US;

/// Elementwise kernels and copies: a fixed time and a bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRates {
    /// Time of an empty kernel, microseconds.
    pub overhead_us: f64,
    /// Fraction of the bandwidth (and of the vector peak) that is reached.
    pub bandwidth_efficiency: f64,
}

impl StreamRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &Stream) -> f64 {
        if shape.bytes <= 0.0 {
            return 0.0;
        }
        let datasheet = (shape.bytes / gpu.memory_bandwidth).max(shape.flops / gpu.vector_flops);
        SECONDS_PER_US * self.overhead_us + datasheet / self.bandwidth_efficiency
    }
}

/// All-reduce in a node: a latency that grows with the group, and a ring's traffic over the links.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllReduceRates {
    /// Fixed part, microseconds.
    pub overhead_us: f64,
    /// For every GPU of the group, microseconds.
    pub per_gpu_us: f64,
    /// Fraction of the link's bandwidth that is reached.
    pub bandwidth_efficiency: f64,
}

impl AllReduceRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &AllReduce) -> f64 {
        if shape.gpus <= 1.0 || shape.bytes <= 0.0 {
            return 0.0;
        }
        let traffic = shape.bytes_per_link() / (self.bandwidth_efficiency * gpu.peer_bandwidth());
        SECONDS_PER_US * (self.overhead_us + self.per_gpu_us * shape.gpus) + traffic
    }
}

/// Copies over the host link have the same form as elementwise kernels, over another bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRates {
    /// Time of an empty copy, microseconds.
    pub overhead_us: f64,
    /// Fraction of the link's bandwidth that is reached.
    pub bandwidth_efficiency: f64,
}

impl HostRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &HostCopy) -> f64 {
        SECONDS_PER_US * self.overhead_us
            + shape.bytes / (self.bandwidth_efficiency * gpu.host_bandwidth)
    }
}
