//! How long a kernel takes: from the datasheet alone, or with efficiencies fitted to measurements.
//!
//! The fitted forms have two to seven parameters each. All are sums, products, minima and maxima of functions that do
//! not fall as a shape grows, so time does not fall either: that is what keeps recovered time from being negative.

use serde::{Deserialize, Serialize};

use crate::kernel::{AllReduce, DecodeAttention, Gemm, HostCopy, Kernel, PrefillAttention, Stream};
use crate::{Calibration, Gpu};

/// A way of turning a kernel into seconds.
#[derive(Debug, Clone, Copy)]
pub enum Roofline<'a> {
    /// `max(flops / peak, bytes / bandwidth)` with the datasheet's peaks: what no kernel can beat.
    Datasheet,
    /// The course's rule: arithmetic at a constant fraction of the peak (attention not halved for causality);
    /// memory and links, where there is no arithmetic in the tensor units or one query a sequence, at full bandwidth.
    Constant(f64),
    /// Fitted efficiencies.
    Calibrated(&'a Calibration),
}

impl Roofline<'_> {
    /// Seconds that `kernel` takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, kernel: &Kernel) -> f64 {
        match self {
            Self::Datasheet => datasheet(gpu, kernel),
            Self::Constant(utilisation) => constant(gpu, kernel, *utilisation),
            Self::Calibrated(calibration) => calibration.seconds(gpu, kernel),
        }
    }
}

fn datasheet(gpu: &Gpu, kernel: &Kernel) -> f64 {
    let arithmetic = kernel.flops() / peak(gpu, kernel);
    let traffic = kernel.bytes() / bandwidth(gpu, kernel);
    arithmetic.max(traffic)
}

fn constant(gpu: &Gpu, kernel: &Kernel, utilisation: f64) -> f64 {
    let flops = match kernel {
        Kernel::Prefill(a) => {
            4.0 * a.batch * a.heads * a.head_dim * a.new_tokens * a.total_tokens().min(a.window)
        }
        Kernel::Gemm(_) => kernel.flops(),
        _ => return kernel.bytes() / bandwidth(gpu, kernel),
    };
    flops / (utilisation * peak(gpu, kernel))
}

/// FLOP/s of the units that run the kernel. Narrower weights than one byte are widened first, so int4 runs at fp16.
fn peak(gpu: &Gpu, kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::Gemm(g) => gemm_peak(gpu, g),
        Kernel::Stream(_) => gpu.vector_flops,
        _ => gpu.peak_flops,
    }
}

fn gemm_peak(gpu: &Gpu, gemm: &Gemm) -> f64 {
    if gemm.weight_bytes == 1.0 {
        gpu.peak_fp8_flops.unwrap_or(gpu.peak_flops)
    } else {
        gpu.peak_flops
    }
}

fn bandwidth(gpu: &Gpu, kernel: &Kernel) -> f64 {
    match kernel {
        Kernel::AllReduce(_) => gpu.peer_bandwidth(),
        Kernel::HostCopy(_) => gpu.host_bandwidth,
        _ => gpu.memory_bandwidth,
    }
}

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

/// Prefill attention: tiles of queries walk over the keys they can see.
///
/// A tile of `query_tile` rows that ends at position E takes `rows (E + key_overhead) (4 head_dim + softmax_flops)`
/// over a processor's share of the peak times `efficiency`. Tiles are aligned to the end of the prompt, so that a
/// longer cached prefix only removes tiles. With the longest tile as the unit, the work is x units a processor; it
/// takes `max(1, x + wave_quantisation (ceil(x) - x))` of them. Traffic comes on top: the loads of a tile overlap
/// with its own arithmetic only in part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillRates {
    /// Query rows of a tile: the kernel's constant, chosen among 64 and 128 by the fit.
    pub query_tile: f64,
    /// Time of an empty kernel, microseconds.
    pub overhead_us: f64,
    /// Fraction of the tensor peak.
    pub efficiency: f64,
    /// What the exponential and the rescaling of one pair cost, as FLOPs of the tensor units.
    pub softmax_flops: f64,
    /// Start and end of a tile, as keys.
    pub key_overhead: f64,
    /// Fraction of the memory bandwidth that is reached.
    pub bandwidth_efficiency: f64,
    /// 0: work is spread evenly over the processors, 1: whole waves only.
    pub wave_quantisation: f64,
}

/// Seconds of a microsecond.
const MICRO: f64 = 1e-6;

/// Rows below which a query tile gets no smaller.
const SMALLEST_TILE_ROWS: f64 = 64.0;

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

/// Elementwise kernels and copies: a fixed time and a bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRates {
    /// Time of an empty kernel, microseconds.
    pub overhead_us: f64,
    /// Fraction of the bandwidth (and of the vector peak) that is reached.
    pub bandwidth_efficiency: f64,
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

/// A fitted form: its parameters, and the seconds they give for one shape.
///
/// All parameters are positive; fits move their logarithms between the bounds.
pub(crate) trait Rates: Clone {
    type Shape: Copy;
    /// Name, lowest, start and highest value of each parameter.
    const PARAMETERS: &'static [(&'static str, [f64; 3])];
    fn values(&self) -> Vec<f64>;
    fn set(&mut self, values: &[f64]);
    fn seconds(&self, gpu: &Gpu, shape: &Self::Shape) -> f64;
    /// What a fit starts from: more than one where a constant that is not a parameter must be chosen.
    fn candidates(&self) -> Vec<Self> {
        vec![self.clone()]
    }
}

/// Implements the bookkeeping of [`Rates`] for a struct: one line a parameter, so that name, bounds and field agree.
macro_rules! parameters {
    ($($field:ident: [$low:expr, $start:expr, $high:expr]),+ $(,)?) => {
        const PARAMETERS: &'static [(&'static str, [f64; 3])] =
            &[$((stringify!($field), [$low, $start, $high])),+];
        fn values(&self) -> Vec<f64> {
            vec![$(self.$field),+]
        }
        fn set(&mut self, values: &[f64]) {
            let mut values = values.iter().copied();
            $(if let Some(value) = values.next() { self.$field = value; })+
        }
    };
}

impl Rates for GemmRates {
    type Shape = Gemm;
    parameters! {
        overhead_us: [0.1, 3.0, 100.0],
        efficiency: [0.05, 0.8, 1.5],
        tile_penalty: [1e-2, 10.0, 300.0],
        inner_overhead: [1e-2, 64.0, 2000.0],
        bandwidth_efficiency: [0.05, 0.9, 1.0],
        split_traffic: [1e-2, 0.5, 300.0],
        overlap: [1.0, 3.0, 20.0],
    }

    fn seconds(&self, gpu: &Gpu, shape: &Gemm) -> f64 {
        if shape.rows <= 0.0 {
            return 0.0;
        }
        let arithmetic = self.best_tiling(gpu, shape);
        let traffic = shape.bytes() / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        MICRO * self.overhead_us + p_norm(arithmetic, traffic, self.overlap)
    }
}

impl GemmRates {
    fn best_tiling(&self, gpu: &Gpu, shape: &Gemm) -> f64 {
        let processors = f64::from(gpu.processors);
        let rate = self.efficiency * gemm_peak(gpu, shape) / processors;
        let partial = 8.0 * self.split_traffic * shape.groups * shape.rows * shape.columns
            / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        let mut best = f64::INFINITY;
        for [a, b] in TILES {
            let tiles = shape.groups * (shape.rows / a).ceil() * (shape.columns / b).ceil();
            let flops_s = 2.0 * a * b * (1.0 + self.tile_penalty * (1.0 / a + 1.0 / b)) / rate;
            for split in SPLITS {
                let waves = (tiles * split / processors).ceil();
                let inner = (shape.inner / split).ceil() + self.inner_overhead;
                let merge = if split > 1.0 { partial * split } else { 0.0 };
                best = best.min(waves * flops_s * inner + merge);
            }
        }
        best
    }
}

impl Rates for PrefillRates {
    type Shape = PrefillAttention;
    parameters! {
        overhead_us: [0.1, 8.0, 100.0],
        efficiency: [0.05, 0.7, 1.3],
        softmax_flops: [1.0, 100.0, 1000.0],
        key_overhead: [0.1, 64.0, 2000.0],
        bandwidth_efficiency: [0.05, 0.6, 1.0],
        wave_quantisation: [1e-3, 0.5, 1.0],
    }

    fn candidates(&self) -> Vec<Self> {
        [64.0, 128.0]
            .map(|query_tile| Self {
                query_tile,
                ..self.clone()
            })
            .to_vec()
    }

    fn seconds(&self, gpu: &Gpu, shape: &PrefillAttention) -> f64 {
        if shape.new_tokens <= 0.0 {
            return 0.0;
        }
        let processors = f64::from(gpu.processors);
        let tiles = (shape.new_tokens / self.query_tile).ceil();
        let rows = (shape.new_tokens / SMALLEST_TILE_ROWS).ceil() * SMALLEST_TILE_ROWS;
        let rows = rows.min(self.query_tile);
        // A single query is turned round: the heads that share keys become the rows of one tile.
        let heads = if shape.new_tokens > 1.0 {
            shape.heads
        } else {
            shape.kv_heads
        };
        let longest = self.keys_of_tile(shape, 0.0);
        let all = shape.batch * heads * self.keys_of_tiles(shape, tiles);
        let units = all / longest / processors;
        let units = (units + self.wave_quantisation * (units.ceil() - units)).max(1.0);
        let flops = rows * longest * (4.0 * shape.head_dim + self.softmax_flops);
        let arithmetic = units * flops * processors / (self.efficiency * gpu.peak_flops);
        let traffic = shape.bytes() / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        MICRO * self.overhead_us + arithmetic + traffic
    }
}

impl PrefillRates {
    /// Keys that the `index`-th tile from the end walks over, its start-up included.
    fn keys_of_tile(&self, shape: &PrefillAttention, index: f64) -> f64 {
        let end = shape.total_tokens() - index * self.query_tile;
        end.min(shape.window + self.query_tile) + self.key_overhead
    }

    /// Sum of [`Self::keys_of_tile`] over the first `tiles` from the end.
    fn keys_of_tiles(&self, shape: &PrefillAttention, tiles: f64) -> f64 {
        let total = shape.total_tokens();
        let widest = shape.window + self.query_tile;
        // Tiles that end further back than the window reaches see as much as they can; they are the latest ones.
        let capped = if total > widest {
            ((total - widest) / self.query_tile).ceil().min(tiles)
        } else {
            0.0
        };
        let rest = tiles - capped;
        let first = total - capped * self.query_tile;
        let triangle = rest * first - self.query_tile * rest * (rest - 1.0) / 2.0;
        let square = if capped > 0.0 { capped * widest } else { 0.0 };
        square + triangle + tiles * self.key_overhead
    }
}

impl Rates for DecodeRates {
    type Shape = DecodeAttention;
    parameters! {
        overhead_us: [0.1, 10.0, 100.0],
        bandwidth_efficiency: [0.05, 0.8, 1.0],
        head_us: [1e-05, 0.01, 1.0],
        merge_us: [0.001, 0.5, 100.0],
    }

    fn seconds(&self, gpu: &Gpu, shape: &DecodeAttention) -> f64 {
        let traffic = shape.bytes() / (self.bandwidth_efficiency * gpu.memory_bandwidth);
        let arithmetic = Kernel::Decode(*shape).flops() / gpu.peak_flops;
        let merge = self.merge_us * (1.0 + shape.context_tokens / 256.0).log2();
        let heads = self.head_us * shape.batch * shape.kv_heads;
        MICRO * (self.overhead_us + merge + heads) + traffic.max(arithmetic)
    }
}

impl Rates for StreamRates {
    type Shape = Stream;
    parameters! {
        overhead_us: [0.1, 3.0, 100.0],
        bandwidth_efficiency: [0.02, 0.7, 1.5],
    }

    fn seconds(&self, gpu: &Gpu, shape: &Stream) -> f64 {
        if shape.bytes <= 0.0 {
            return 0.0;
        }
        let datasheet = (shape.bytes / gpu.memory_bandwidth).max(shape.flops / gpu.vector_flops);
        MICRO * self.overhead_us + datasheet / self.bandwidth_efficiency
    }
}

impl Rates for AllReduceRates {
    type Shape = AllReduce;
    parameters! {
        overhead_us: [0.1, 5.0, 100.0],
        per_gpu_us: [0.01, 1.0, 100.0],
        bandwidth_efficiency: [0.02, 0.7, 1.5],
    }

    fn seconds(&self, gpu: &Gpu, shape: &AllReduce) -> f64 {
        if shape.gpus <= 1.0 || shape.bytes <= 0.0 {
            return 0.0;
        }
        let traffic = shape.bytes_per_link() / (self.bandwidth_efficiency * gpu.peer_bandwidth());
        MICRO * (self.overhead_us + self.per_gpu_us * shape.gpus) + traffic
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

impl Rates for HostRates {
    type Shape = HostCopy;
    parameters! {
        overhead_us: [0.1, 10.0, 1000.0],
        bandwidth_efficiency: [0.02, 0.8, 1.5],
    }

    fn seconds(&self, gpu: &Gpu, shape: &HostCopy) -> f64 {
        MICRO * self.overhead_us + shape.bytes / (self.bandwidth_efficiency * gpu.host_bandwidth)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn calibrations() -> Vec<(Gpu, Calibration)> {
        let of = |gpu: Gpu| Calibration::named(&gpu.calibration).map(|c| (gpu, c));
        Gpu::presets()
            .unwrap()
            .into_iter()
            .map(|gpu| of(gpu).unwrap())
            .collect()
    }

    /// Seconds of `small` and of `large` under every way of pricing on every GPU.
    fn both(small: &Kernel, large: &Kernel) -> Vec<[f64; 2]> {
        let mut times = Vec::new();
        for (gpu, calibration) in &calibrations() {
            let ways = [
                Roofline::Datasheet,
                Roofline::Constant(0.5),
                Roofline::Calibrated(calibration),
            ];
            times.extend(ways.map(|way| [way.seconds(gpu, small), way.seconds(gpu, large)]));
        }
        times
    }

    /// The powers and logarithms are good to the last bit but one.
    fn not_faster(small: &Kernel, large: &Kernel) -> Result<(), TestCaseError> {
        for [a, b] in both(small, large) {
            prop_assert!(a.is_finite() && a >= 0.0, "{small:?}: {a}");
            prop_assert!(b >= a * (1.0 - 1e-12), "{large:?}: {b} is less than {a}");
        }
        Ok(())
    }

    fn attention([batch, new, cached, heads, window]: [u32; 5]) -> PrefillAttention {
        PrefillAttention {
            batch: f64::from(batch),
            new_tokens: f64::from(new),
            cached_tokens: f64::from(cached),
            heads: f64::from(4 * heads),
            kv_heads: f64::from(heads),
            head_dim: 128.0,
            window: if window == 0 {
                f64::INFINITY
            } else {
                f64::from(window)
            },
            kv_bytes: 2.0,
        }
    }

    proptest! {
        #[test]
        fn a_larger_product_is_not_faster(
            [rows, columns, inner] in [1u32..10_000, 1u32..20_000, 1u32..20_000],
            [more_rows, more_columns, more_inner] in [0u32..300, 0u32..300, 0u32..300],
        ) {
            let product = |m, n, k| Kernel::Gemm(Gemm::fp16(f64::from(m), f64::from(n), f64::from(k)));
            let large = product(rows + more_rows, columns + more_columns, inner + more_inner);
            not_faster(&product(rows, columns, inner), &large)?;
        }

        #[test]
        fn more_new_or_cached_tokens_are_not_faster(
            [batch, new, cached, heads] in [1u32..9, 1u32..5000, 0u32..50_000, 1u32..9],
            window in prop_oneof![Just(0u32), 1u32..6000],
            [more_new, more_cached] in [0u32..300, 0u32..300],
        ) {
            let small = attention([batch, new, cached, heads, window]);
            let large = attention([batch, new + more_new, cached + more_cached, heads, window]);
            not_faster(&Kernel::Prefill(small), &Kernel::Prefill(large))?;
        }

        #[test]
        fn caching_more_of_the_same_prompt_is_not_slower(
            [batch, total, heads] in [1u32..9, 2u32..50_000, 1u32..9],
            window in prop_oneof![Just(0u32), 1u32..6000],
            [first, second] in [0.0..1.0f64, 0.0..1.0f64],
        ) {
            let cached = |part: f64| (f64::from(total - 1) * part) as u32;
            let of = |cached: u32| attention([batch, total - cached, cached, heads, window]);
            let [more, less] = [cached(first.max(second)), cached(first.min(second))];
            not_faster(&Kernel::Prefill(of(more)), &Kernel::Prefill(of(less)))?;
        }

        #[test]
        fn a_longer_context_is_not_faster_to_decode(
            [batch, context, heads] in [1u32..300, 1u32..100_000, 1u32..9],
            [more_batch, more_context] in [0u32..9, 0u32..3000],
        ) {
            let decode = |batch, context| Kernel::Decode(DecodeAttention {
                batch: f64::from(batch),
                context_tokens: f64::from(context),
                heads: f64::from(4 * heads),
                kv_heads: f64::from(heads),
                pair_width: 256.0,
                elements_per_token: 256.0 * f64::from(heads),
                kv_bytes: 2.0,
            });
            not_faster(&decode(batch, context), &decode(batch + more_batch, context + more_context))?;
        }

        #[test]
        fn a_slower_gpu_is_not_faster(
            [rows, columns, inner] in [1u32..10_000, 1u32..20_000, 1u32..20_000], share in 0.1..1.0f64,
        ) {
            let gemm = Kernel::Gemm(Gemm::fp16(f64::from(rows), f64::from(columns), f64::from(inner)));
            let prefill = Kernel::Prefill(attention([1, rows, columns, 8, 0]));
            for (gpu, calibration) in calibrations() {
                let mut slow = gpu.clone();
                slow.peak_flops *= share;
                for way in [Roofline::Datasheet, Roofline::Constant(0.5), Roofline::Calibrated(&calibration)] {
                    for kernel in [&gemm, &prefill] {
                        let (slow, fast) = (way.seconds(&slow, kernel), way.seconds(&gpu, kernel));
                        prop_assert!(slow >= fast * (1.0 - 1e-12), "{kernel:?}: {slow} under {fast}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_calibrated_kernel_beats_the_datasheet_by_much() {
        // A fit may overshoot a little where the clock boosts; more than that would be a wrong form.
        for (gpu, calibration) in calibrations() {
            for rows in [1.0, 64.0, 777.0, 8192.0] {
                let gemm = Kernel::Gemm(Gemm::fp16(rows, 4096.0, 4096.0));
                let prefill = Kernel::Prefill(attention([1, rows as u32, 4096, 8, 0]));
                for kernel in [gemm, prefill] {
                    let calibrated = calibration.seconds(&gpu, &kernel);
                    let limit = Roofline::Datasheet.seconds(&gpu, &kernel);
                    assert!(calibrated > 0.95 * limit, "{} {kernel:?}", gpu.name);
                }
            }
        }
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        let gpu = Gpu::named("h100").unwrap();
        let calibration = Calibration::named("h100").unwrap();
        let nothing = [
            Kernel::Gemm(Gemm::fp16(0.0, 8.0, 8.0)),
            Kernel::Prefill(attention([1, 0, 9, 1, 0])),
            Kernel::Stream(Stream {
                bytes: 0.0,
                flops: 0.0,
            }),
            Kernel::AllReduce(AllReduce {
                bytes: 100.0,
                gpus: 1.0,
            }),
        ];
        for kernel in nothing {
            assert_eq!(calibration.seconds(&gpu, &kernel), 0.0, "{kernel:?}");
        }
    }
}
