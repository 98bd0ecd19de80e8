//! Attention of new tokens over a cached prefix and themselves.

use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::kernel::PrefillAttention;
use crate::units::SECONDS_PER_US;

/// Rows below which a query tile gets no smaller.
const SMALLEST_TILE_ROWS: f64 = 64.0;

/// Prefill attention: tiles of queries walk over the keys they can see.
///
/// A tile of `query_tile` rows that ends at position E takes `rows (E + key_overhead) (4 head_dim + softmax_flops)`
/// over a processor's share of the peak times `efficiency`. Tiles are aligned to the end of the prompt, so that a
/// longer cached prefix only removes tiles. With the longest tile as the unit, the work is x units per processor; it
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

impl PrefillRates {
    /// Seconds that the kernel takes on `gpu`.
    pub fn seconds(&self, gpu: &Gpu, shape: &PrefillAttention) -> f64 {
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
        SECONDS_PER_US * self.overhead_us + arithmetic + traffic
    }

    /// Seconds that the `tokens` tokens at the start of a prompt that goes on for long take in a pass that computes all of it, without
    /// its fixed time: the mean over all alignments of tiles to the end, which tile ends E from 0 to `tokens` share equally. Two
    /// lengths of a prefix differ by what the tokens between them add. `shape` says everything but the lengths.
    pub(crate) fn marginal_seconds(&self, gpu: &Gpu, shape: &PrefillAttention, tokens: f64) -> f64 {
        let widest = shape.window + self.query_tile;
        let triangle = tokens.min(widest);
        let square = if tokens > widest {
            (tokens - widest) * widest
        } else {
            0.0
        };
        let keys = triangle * triangle / 2.0 + square + tokens * self.key_overhead;
        let flops = shape.batch * shape.heads * keys * (4.0 * shape.head_dim + self.softmax_flops);
        let queries = PrefillAttention {
            new_tokens: tokens,
            cached_tokens: 0.0,
            kv_heads: 0.0,
            ..*shape
        };
        // Keys that only these queries read: those that a window hides from later ones.
        let keys = PrefillAttention {
            new_tokens: (tokens - shape.window).max(0.0),
            cached_tokens: 0.0,
            heads: 0.0,
            window: f64::INFINITY,
            ..*shape
        };
        let traffic = queries.bytes() + keys.bytes();
        flops / (self.efficiency * gpu.peak_flops)
            + traffic / (self.bandwidth_efficiency * gpu.memory_bandwidth)
    }

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
