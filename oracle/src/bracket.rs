//! What the oracle says of one capacity: what no policy can exceed, and what a schedule reached.

use policy_api::StateBytes;
use serde::Serialize;

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OracleOptions {
    /// Good enough: the share of the upper bound by which the lower may miss it, in seconds.
    pub gap: f64,
    /// Steps that lower the upper bound, at most.
    pub steps: u32,
}

impl Default for OracleOptions {
    fn default() -> Self {
        Self {
            gap: 0.0,
            steps: 2400,
        }
    }
}

/// What the model keeps of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMemory {
    /// KV bytes of one block.
    pub block_bytes: u64,
    /// What a saved state weighs, where the model resumes only from one.
    pub state: Option<StateBytes>,
}

/// Bounds on what any policy reaches at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bracket {
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// Inverted block intervals of the trace. With none, the tokens are exact.
    pub inversions: u64,
    /// Hit tokens.
    pub tokens: TokenBounds,
    /// Recovered seconds of prefill.
    pub seconds: SecondBounds,
    /// Tree-aware LRU.
    pub lru: Recovered,
    /// The infinite-cache bound: what a cache of unlimited capacity recovers.
    pub ceiling: Recovered,
}

/// Bounds on hit tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TokenBounds {
    /// A schedule reached this.
    pub lower: u64,
    /// No policy exceeds this.
    pub upper: u64,
    /// Whether the two meet, which makes both the optimum.
    pub exact: bool,
}

/// Bounds on recovered seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SecondBounds {
    /// A schedule reached this.
    pub lower: f64,
    /// No policy exceeds this.
    pub upper: f64,
    /// The difference as a share of the upper bound; 0 where that is 0, and where it is no more than rounding: then both are
    /// the optimum.
    pub gap: f64,
    /// Steps taken to lower the upper bound.
    pub steps: u32,
}

/// What one schedule recovered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Recovered {
    /// Hit tokens.
    pub hit_tokens: u64,
    /// Recovered seconds of prefill.
    pub prefill_seconds_recovered: f64,
}

impl Bracket {
    /// A policy's recovered seconds as a share of the upper bound; `None` where that is 0.
    pub fn capture(&self, recovered_seconds: f64) -> Option<f64> {
        (self.seconds.upper > 0.0).then(|| recovered_seconds / self.seconds.upper)
    }

    /// (policy − LRU) ÷ (upper bound − LRU), in seconds; `None` for the reason that [`Self::why_no_gap`] gives.
    pub fn gap_closed(&self, recovered_seconds: f64) -> Option<f64> {
        let lru = self.lru.prefill_seconds_recovered;
        let gap = self.seconds.upper - lru;
        self.why_no_gap()
            .is_none()
            .then(|| (recovered_seconds - lru) / gap)
    }

    /// Why there is no gap to close, if there is none: LRU is within [`LEAST_GAP_SHARE`] of the upper bound, so that a share of
    /// the difference would be a share of noise.
    pub fn why_no_gap(&self) -> Option<&'static str> {
        let gap = self.seconds.upper - self.lru.prefill_seconds_recovered;
        (gap <= LEAST_GAP_SHARE * self.seconds.upper)
            .then_some("LRU is within 0.001% of the upper bound: there is no gap to close")
    }
}

/// Where LRU misses less than this share of the bound, there is no gap to close.
pub const LEAST_GAP_SHARE: f64 = 1e-5;

/// What sums over a whole trace may be off by, as a share.
const ROUNDING: f64 = 1e-10;

pub(crate) fn relative_gap(lower: f64, upper: f64) -> f64 {
    let gap = (upper - lower) / upper;
    if gap > ROUNDING { gap } else { 0.0 }
}
