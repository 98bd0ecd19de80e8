//! The oracle for models that resume only from saved states.
//!
//! Above: the dual of the prefix program, in which a hit pays for the KV of its prefix and for the state at its end
//! (`dual.rs`). Below: schedules that know when a prefix is wanted again, replayed through the same cache as any policy. They
//! save a state wherever the longest possible hit of some later request ends.

use std::cmp::Reverse;

use cache::{CacheConfig, EvictUnit};
use policy_api::{
    AdmissionPolicy, BlockId, Candidate, CandidateKind, EvictionPolicy, NodeId, PathInsertion,
    Policy, Ranked, RequestView, Score, StateBytes, Victim, WithdrawReason,
};

use crate::belady::whole_path;
use crate::bracket::{
    Best, Bracket, DUAL_RENTS, Options, Oracle, Recovered, SecondBounds, TokenBounds, relative_gap,
};
use crate::dual::{Dual, Prices, Stop, prefix_dual_of_slots, unpriced};
use crate::flat::flat_belady_blocks;
use crate::gains::Gains;
use crate::intervals::{NEVER, Time};
use crate::next_use::NextUse;
use crate::schedule::{Hits, Unpriced, replay_in};

/// A trace and what states weigh, prepared for brackets at any capacity. Shared between threads as it is.
pub struct StateOracle<'a> {
    oracle: &'a Oracle<'a>,
    block_bytes: u64,
    state: StateBytes,
    seconds: Gains,
    tokens: Gains,
    /// By block, the last request whose longest possible hit ends with it; 0 for none.
    resumed_until: Vec<Time>,
}

/// Where a state that grows with a window of so many blocks weighs a quarter, a half, three quarters, all of what it may.
fn window_cuts(window_blocks: u32) -> Vec<u32> {
    let quarter = |quarters: u32| window_blocks / 4 * quarters;
    let mut cuts: Vec<_> = (1..4).map(quarter).chain([window_blocks]).collect();
    cuts.retain(|cut| *cut > 0);
    cuts.dedup();
    cuts
}

fn resumed_until(oracle: &Oracle<'_>) -> Vec<Time> {
    let workload = oracle.workload();
    let mut until = vec![0; workload.distinct_blocks() as usize];
    for (time, request) in (0..).zip(workload.requests()) {
        let longest = request.seen_blocks.min(workload.usable_blocks(request));
        if let Some(last) = longest.checked_sub(1) {
            until[workload.path(request)[last as usize] as usize] = time;
        }
    }
    until
}

impl<'a> StateOracle<'a> {
    /// The same trace for a model that resumes only from saved states, with blocks and states of so many bytes. Takes the time
    /// of one cost evaluation a touch.
    pub fn new(oracle: &'a Oracle<'a>, block_bytes: u64, state: StateBytes) -> Self {
        let block_tokens = u64::from(oracle.workload().block_tokens());
        let slots =
            |blocks: u32| state.at(u64::from(blocks) * block_tokens) as f64 / block_bytes as f64;
        let intervals = oracle.intervals();
        let hit_tokens = |_, hit: u32| (u64::from(hit) * block_tokens) as f64;
        let saved = |time, hit| oracle.saved(time, hit);
        let window_blocks = state.window_tokens.div_ceil(block_tokens);
        let cuts = window_cuts(u32::try_from(window_blocks).unwrap_or(u32::MAX));
        Self {
            seconds: Gains::with_states(intervals, saved, slots, &cuts),
            tokens: Gains::with_states(intervals, hit_tokens, slots, &cuts),
            resumed_until: resumed_until(oracle),
            oracle,
            block_bytes,
            state,
        }
    }

    /// The bracket at one capacity. Its LRU is that of `lru` with its admission, `all`.
    pub fn bracket(&self, capacity_bytes: u64, options: &Options) -> Bracket {
        let lru = self.replay(capacity_bytes, &mut StateLru::default());
        let lru_recovered = self.oracle.recovered(&lru);
        let mut best = Best {
            hits: lru,
            seconds: lru_recovered.prefill_seconds_recovered,
            hit_tokens: lru_recovered.hit_tokens,
        };
        let tokens = self.dual(
            &self.tokens,
            capacity_bytes,
            options,
            best.hit_tokens as f64,
        );
        let seconds = self.dual(&self.seconds, capacity_bytes, options, best.seconds);
        self.try_schedules(capacity_bytes, [&seconds, &tokens], options, &mut best);
        self.report(capacity_bytes, &best, &tokens, &seconds, lru_recovered)
    }

    fn report(
        &self,
        capacity_bytes: u64,
        best: &Best,
        tokens: &Dual,
        seconds: &Dual,
        lru: Recovered,
    ) -> Bracket {
        let capacity_blocks = capacity_bytes / self.block_bytes;
        let intervals = self.oracle.intervals();
        // Without states nothing can hit more than Belady on blocks alone.
        let of_blocks = flat_belady_blocks(intervals, capacity_blocks);
        let block_tokens = u64::from(self.oracle.workload().block_tokens());
        let whole = |tokens: f64| (tokens * (1.0 + ROUNDING)) as u64 / block_tokens * block_tokens;
        let upper = self.oracle.to_tokens(of_blocks).min(whole(tokens.upper));
        let most_seconds = if upper == 0 { 0.0 } else { seconds.upper };
        Bracket {
            capacity_blocks,
            inversions: intervals.inversions(),
            tokens: TokenBounds {
                lower: best.hit_tokens,
                upper,
                exact: best.hit_tokens == upper,
            },
            seconds: SecondBounds {
                lower: best.seconds,
                upper: most_seconds,
                gap: relative_gap(best.seconds, most_seconds),
                steps: seconds.steps,
            },
            lru,
            ceiling: self.oracle.ceiling(),
        }
    }

    fn dual(&self, gains: &Gains, capacity_bytes: u64, options: &Options, lower: f64) -> Dual {
        let slots = capacity_bytes as f64 / self.block_bytes as f64;
        let stop = Stop {
            steps: options.steps,
            gap: options.gap,
            lower,
        };
        let dual = prefix_dual_of_slots(gains, slots, stop);
        Dual {
            upper: dual.upper.min(unpriced(gains, slots)),
            ..dual
        }
    }

    /// Replays the schedules: by next use alone, and by what a candidate saves then, less rents.
    fn try_schedules(
        &self,
        capacity_bytes: u64,
        [of_seconds, of_tokens]: [&Dual; 2],
        options: &Options,
        best: &mut Best,
    ) {
        let is_close = |lower: f64, dual: &Dual| dual.upper - lower <= options.gap * dual.upper;
        let seconds =
            |time, from, end| self.oracle.saved(time, end) - self.oracle.saved(time, from);
        let block_tokens = f64::from(self.oracle.workload().block_tokens());
        let tokens = |_, from: u32, end: u32| f64::from(end - from) * block_tokens;
        let none = Prices::constant(self.oracle.requests(), 0.0);
        self.offer(capacity_bytes, &none, &|_, _, _| 0.0, best);
        for times in DUAL_RENTS {
            if !is_close(best.seconds, of_seconds) {
                let rents = of_seconds.prices.times(times);
                self.offer(capacity_bytes, &rents, &seconds, best);
            }
            if !is_close(best.hit_tokens as f64, of_tokens) {
                let rents = of_tokens.prices.times(times);
                self.offer(capacity_bytes, &rents, &tokens, best);
            }
        }
    }

    fn offer<G>(&self, capacity_bytes: u64, rents: &Prices, gain: &G, best: &mut Best)
    where
        G: Fn(Time, u32, u32) -> f64,
    {
        let distinct = self.oracle.workload().distinct_blocks() as usize;
        let mut policy = StateBelady {
            next_use: self.oracle.next_use(),
            rents,
            gain,
            block_bytes: self.block_bytes,
            resumed_until: &self.resumed_until,
            touched: vec![NEVER; distinct],
            ranked: Ranked::new(),
        };
        let hits = self.replay(capacity_bytes, &mut policy);
        self.oracle.offer(hits, best);
    }

    fn replay(&self, capacity_bytes: u64, policy: &mut dyn Policy) -> Hits {
        let workload = self.oracle.workload();
        let config = CacheConfig {
            capacity_bytes,
            block_bytes: self.block_bytes,
            block_tokens: workload.block_tokens(),
            evict_unit: EvictUnit::Block,
            state: Some(self.state),
        };
        replay_in(workload, config, &Unpriced, policy)
    }
}

/// What a sum of token counts may be off by, as a share.
const ROUNDING: f64 = 1e-12;

/// LRU over leaves and states, which saves them where `all` does.
#[derive(Default)]
struct StateLru(Ranked<(Time, Reverse<u32>, Time)>);

impl EvictionPolicy for StateLru {
    fn offer(&mut self, candidate: &Candidate) {
        let depth = Reverse(candidate.depth_blocks);
        self.0.put(
            candidate.id,
            (candidate.last_used, depth, candidate.created),
        );
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.0.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.0.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.0.remove(evicted.id);
    }
}

impl AdmissionPolicy for StateLru {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        whole_path(request)
    }
}

/// Evicts what saves least per byte at its next use, less the rents until then; of equals, what is wanted last.
struct StateBelady<'a, G> {
    next_use: &'a NextUse,
    rents: &'a Prices,
    /// Of a request, by the blocks it would hit without the candidate and with it.
    gain: &'a G,
    block_bytes: u64,
    resumed_until: &'a [Time],
    /// By block, the request that touched it last.
    touched: Vec<Time>,
    ranked: Ranked<(Score, Reverse<Time>, Reverse<u32>)>,
}

impl<G: Fn(Time, u32, u32) -> f64> StateBelady<'_, G> {
    fn next_use_of(&self, last_block: BlockId, depth: u32) -> Time {
        let touched = self.touched[last_block as usize];
        self.next_use.after(touched, depth).time
    }
}

impl<G: Fn(Time, u32, u32) -> f64> EvictionPolicy for StateBelady<'_, G> {
    fn offer(&mut self, candidate: &Candidate) {
        let end = candidate.depth_blocks + candidate.blocks;
        let next = self.next_use_of(candidate.last_block, end - 1);
        // A leaf without a state saves nothing, whenever it is wanted.
        let is_useless = candidate.kind == CandidateKind::Leaf
            && candidate.bytes == u64::from(candidate.blocks) * self.block_bytes;
        let worth = if next == NEVER || is_useless {
            f64::NEG_INFINITY
        } else {
            let slots = candidate.bytes as f64 / self.block_bytes as f64;
            (self.gain)(next, candidate.base_blocks, end) / slots.max(f64::MIN_POSITIVE)
                - self.rents.before(next)
        };
        let key = (Score(worth), Reverse(next), Reverse(candidate.depth_blocks));
        self.ranked.put(candidate.id, key);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.ranked.remove(evicted.id);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        for block in request.path {
            self.touched[*block as usize] = request.index;
        }
    }
}

impl<G: Fn(Time, u32, u32) -> f64> AdmissionPolicy for StateBelady<'_, G> {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        whole_path(request)
    }

    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        positions: &mut Vec<u32>,
    ) {
        let wanted = |end: &u32| {
            let last = request.path[*end as usize - 1];
            self.resumed_until[last as usize] > request.index
        };
        let below_hit = request.hit_blocks + 1..=insertion.resident_blocks;
        positions.extend(below_hit.filter(wanted));
    }
}
