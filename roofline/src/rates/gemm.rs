//! Matrix products.

use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::kernel::Gemm;
use crate::units::SECONDS_PER_US;

/// Tiles of the output that matrix libraries work in; one processor computes one tile at a time.
const TILES: [[f64; 2]; 4] = [[128.0, 256.0], [256.0, 128.0], [128.0, 128.0], [64.0, 64.0]];

/// Into how many parts the summed dimension may be cut, to occupy more processors.
const SPLITS: [f64; 8] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];

/// Matrix products: the best of a few tilings, in whole waves of tiles over the processors, against memory.
///
/// A tile of `a` by `b` takes `2ab (k + inner_overhead) / rate`, where the rate is a processor's share of the peak
/// times `efficiency / (1 + tile_penalty (1/a + 1/b))`: small tiles reuse less. Cutting `k` into s parts costs
/// `split_traffic` times the traffic of s fp32 partial results, written and read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GemmRates {
    /// Time of an empty kernel, microseconds.
    pub overhead_us: f64,
    /// Fraction of the tensor peak that an endless tile would reach.
    pub efficiency: f64,
    /// Elements; see the type.
    pub tile_penalty: f64,
    /// Start and end of a tile, as elements of the summed dimension.
    pub inner_overhead: f64,
    /// Fraction of the memory bandwidth that is reached.
    pub bandwidth_efficiency: f64,
    /// See the type.
    pub split_traffic: f64,
    /// Arithmetic and memory combine as a p-norm of this power: 1 one after the other, large: fully overlapped.
    pub overlap: f64,
}

impl GemmRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &Gemm) -> f64 {
        if shape.rows <= 0.0 {
            return 0.0;
        }
        let arithmetic = self.best_tiling(gpu, shape);
        let traffic = shape.bytes() / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        SECONDS_PER_US * self.overhead_us + p_norm(arithmetic, traffic, self.overlap)
    }

    /// Seconds per row of a product of very many rows, in whole waves of every tiling.
    pub(crate) fn seconds_per_row(&self, gpu: &Gpu, shape: &Gemm) -> f64 {
        let rows = 256.0 * f64::from(gpu.processors);
        let of = |rows| self.seconds(gpu, &Gemm { rows, ..*shape });
        (of(2.0 * rows) - of(rows)) / rows
    }

    fn best_tiling(&self, gpu: &Gpu, shape: &Gemm) -> f64 {
        let processors = f64::from(gpu.processors);
        let rate = self.efficiency * gpu.gemm_flops(shape.weight_bytes) / processors;
        let partial = 8.0 * self.split_traffic * shape.groups * shape.rows * shape.columns
            / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        let mut best = f64::INFINITY;
        for [a, b] in TILES {
            let tiles = shape.groups * (shape.rows / a).ceil() * (shape.columns / b).ceil();
            let tile_seconds = 2.0 * a * b * (1.0 + self.tile_penalty * (1.0 / a + 1.0 / b)) / rate;
            for split in SPLITS {
                let waves = (tiles * split / processors).ceil();
                let inner = (shape.inner / split).ceil() + self.inner_overhead;
                let merge = if split > 1.0 { partial * split } else { 0.0 };
                best = best.min(waves * tile_seconds * inner + merge);
            }
        }
        best
    }
}

/// `(a^p + b^p)^(1/p)` without overflow.
fn p_norm(a: f64, b: f64, power: f64) -> f64 {
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    if large <= 0.0 {
        0.0
    } else {
        large * (1.0 + (small / large).powf(power)).powf(1.0 / power)
    }
}
