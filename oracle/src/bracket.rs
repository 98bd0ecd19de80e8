//! The oracle's answer at one capacity: what no policy can exceed, and what a schedule reached.

use cache::{CacheConfig, EvictUnit};
use policy_api::PrefillCost;
use policy_api::StateBytes;
use serde::Serialize;
use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::certificate::Certificate;
use crate::per_token;
use crate::priced_trace::PricedTrace;
use crate::schedule::{Hits, replay};
use crate::states::StateOracle;

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

/// A trace, a cost model and a model's memory, prepared for brackets at any capacity. Shared between threads as it is.
pub struct Oracle<'a> {
    trace: PricedTrace<'a>,
    memory: BlockMemory,
    /// Where the model resumes only from saved states.
    states: Option<StateOracle>,
}

impl<'a> Oracle<'a> {
    /// Prepares a trace whose first `warmup_requests` fill the cache and are not measured. Takes the time of one cost
    /// evaluation per touch; holds 8 bytes per touch, and a few dozen bytes per interval.
    pub fn new(
        workload: &'a Workload,
        cost: &'a (dyn PrefillCost + Send + Sync),
        memory: BlockMemory,
        warmup_requests: u32,
    ) -> Self {
        let trace = PricedTrace::new(workload, cost, warmup_requests);
        let state = |state| StateOracle::new(&trace, memory.block_bytes, state);
        Self {
            states: memory.state.map(state),
            memory,
            trace,
        }
    }

    /// The bracket at one capacity.
    pub fn bracket(&self, capacity_bytes: u64, options: &OracleOptions) -> Bracket {
        self.search(capacity_bytes, options).0
    }

    /// What an engine that cannot refuse a running request's blocks reaches under Belady: a feasible lower bound for such
    /// engines. A policy that refuses may exceed it. Only for models whose KV is per token: `None` for others.
    pub fn no_bypass(&self, capacity_bytes: u64) -> Option<Recovered> {
        if self.states.is_some() {
            return None;
        }
        let capacity_blocks = capacity_bytes / self.memory.block_bytes;
        let mut policy = Belady::new(&self.trace.next_use, Bypass::Denied);
        let hits = replay(self.trace.workload, capacity_blocks, &mut policy);
        Some(self.trace.recovered(&hits))
    }

    /// The upper bound in seconds at one capacity, with the prices that prove it: [`verify`](crate::verify) checks them. Only
    /// for models whose KV is per token: `None` for others.
    pub fn certificate(&self, capacity_bytes: u64, options: &OracleOptions) -> Option<Certificate> {
        let capacity_blocks = capacity_bytes / self.memory.block_bytes;
        let certificate = || per_token::certificate(&self.trace, capacity_blocks, options);
        self.states.is_none().then(certificate)
    }

    /// The cache that a bracket is about.
    pub fn cache_config(&self, capacity_bytes: u64) -> CacheConfig {
        CacheConfig {
            capacity_bytes,
            block_bytes: self.memory.block_bytes,
            block_tokens: self.trace.workload.block_tokens(),
            evict_unit: EvictUnit::Block,
            state: self.memory.state,
        }
    }

    pub(crate) fn trace(&self) -> &PricedTrace<'a> {
        &self.trace
    }

    /// The bracket, and the schedule that saves the most seconds of those tried: what the lower bound stands on.
    pub(crate) fn search(&self, capacity_bytes: u64, options: &OracleOptions) -> (Bracket, Hits) {
        match &self.states {
            Some(states) => states.search(&self.trace, capacity_bytes, options),
            None => {
                let capacity_blocks = capacity_bytes / self.memory.block_bytes;
                per_token::search(&self.trace, capacity_blocks, options)
            }
        }
    }
}

/// The best of the schedules tried so far.
pub(crate) struct Best {
    pub(crate) hits: Hits,
    /// What `hits` save.
    pub(crate) seconds: f64,
    /// The most hit tokens of any schedule tried.
    pub(crate) hit_tokens: u64,
}

impl Best {
    pub(crate) fn new(hits: Hits, found: Recovered) -> Self {
        Self {
            hits,
            seconds: found.prefill_seconds_recovered,
            hit_tokens: found.hit_tokens,
        }
    }

    /// Keeps the better of two schedules in seconds, and the most hit tokens of both.
    pub(crate) fn offer(&mut self, trace: &PricedTrace<'_>, hits: Hits) {
        let found = trace.recovered(&hits);
        self.hit_tokens = self.hit_tokens.max(found.hit_tokens);
        if found.prefill_seconds_recovered > self.seconds {
            self.seconds = found.prefill_seconds_recovered;
            self.hits = hits;
        }
    }
}

/// Multiples of the dual prices that are tried as rents. The exact ones are right for fractions of blocks.
pub(crate) const DUAL_RENTS: [f64; 5] = [1.0, 0.95, 1.05, 0.9, 1.1];

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
