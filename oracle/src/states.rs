//! The oracle for models that resume only from saved states.
//!
//! Upper bound: the dual of the prefix program, in which a hit pays for the KV of its prefix and for the state at its end
//! (`dual.rs`). Lower bound: schedules that know the next use of every prefix, replayed through the same cache as any policy.
//! They save a state wherever the longest possible hit of some later request ends.

use std::cmp::Reverse;

use cache::{CacheConfig, EvictUnit, Track};
use policy_api::{
    AdmissionPolicy, BlockId, Candidate, CandidateKind, EvictionPolicy, NodeId, PathInsertion,
    Policy, Ranked, RequestView, Score, StateBytes, Tick, Victim, WithdrawReason,
};
use trace::Workload;

use crate::belady::whole_path;
use crate::best::{Best, DUAL_RENTS};
use crate::bracket::{Bracket, OracleOptions, Recovered, SecondBounds, TokenBounds, relative_gap};
use crate::dual::{Dual, Stop};
use crate::dual_search::{better_dual, first_dual};
use crate::flat::flat_belady_blocks;
use crate::intervals::{NEVER, Time};
use crate::next_use::NextUse;
use crate::prefix_program::{PrefixProgram, Relaxation, StateWeight};
use crate::priced_trace::PricedTrace;
use crate::prices::Prices;
use crate::schedule::{Hits, Unpriced, replay_in};

/// What states weigh on one trace, prepared for brackets at any capacity.
pub(crate) struct StateOracle {
    block_bytes: u64,
    state: StateBytes,
    /// Depths at which pieces end, so that their states are not far too light.
    cuts: Vec<u32>,
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

fn resumed_until(workload: &Workload) -> Vec<Time> {
    let mut until = vec![0; workload.distinct_blocks() as usize];
    for (time, request) in (0..).zip(workload.requests()) {
        let longest = request.seen_blocks.min(workload.usable_blocks(request));
        if let Some(last) = longest.checked_sub(1) {
            until[workload.path(request)[last as usize].index()] = time;
        }
    }
    until
}

impl StateOracle {
    /// Prepares a trace for blocks and states of so many bytes.
    pub(crate) fn new(trace: &PricedTrace<'_>, block_bytes: u64, state: StateBytes) -> Self {
        let block_tokens = u64::from(trace.workload.block_tokens());
        let window_blocks = state.window_tokens.div_ceil(block_tokens);
        Self {
            cuts: window_cuts(u32::try_from(window_blocks).unwrap_or(u32::MAX)),
            resumed_until: resumed_until(trace.workload),
            block_bytes,
            state,
        }
    }

    /// The bracket at one capacity, and the schedule that its lower bound in seconds stands on. Its LRU is that of `lru` with
    /// its admission, `all`.
    pub(crate) fn search(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        options: &OracleOptions,
    ) -> (Bracket, Hits) {
        let lru_hits = self.replay(trace, capacity_bytes, &mut StateLru::default());
        let lru = trace.recovered(&lru_hits);
        let mut best = Best::new(lru_hits, lru);
        let block_tokens = f64::from(trace.workload.block_tokens());
        let hit_tokens = |_, hit: u32| f64::from(hit) * block_tokens;
        let saved = |time, hit| trace.saved(time, hit);
        let stop = |lower| Stop {
            steps: options.steps,
            gap: options.gap,
            lower,
        };
        let most_tokens = best.hit_tokens as f64;
        let tokens = self.dual(trace, capacity_bytes, hit_tokens, stop(most_tokens));
        let seconds = self.dual(trace, capacity_bytes, saved, stop(best.seconds));
        let duals = [&seconds, &tokens];
        self.try_schedules(trace, capacity_bytes, duals, options, &mut best);
        let bracket = self.report(trace, capacity_bytes, &best, duals, lru);
        (bracket, best.hits)
    }

    fn report(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        best: &Best,
        [seconds, tokens]: [&Dual; 2],
        lru: Recovered,
    ) -> Bracket {
        let capacity_blocks = capacity_bytes / self.block_bytes;
        // Without states nothing can hit more than Belady on blocks alone.
        let of_blocks = flat_belady_blocks(&trace.intervals, capacity_blocks);
        let block_tokens = u64::from(trace.workload.block_tokens());
        let whole = |tokens: f64| (tokens * (1.0 + ROUNDING)) as u64 / block_tokens * block_tokens;
        let upper = trace.to_tokens(of_blocks).min(whole(tokens.upper));
        let most_seconds = if upper == 0 { 0.0 } else { seconds.upper };
        Bracket {
            capacity_blocks,
            inversions: trace.intervals.inversions(),
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
            ceiling: trace.ceiling,
        }
    }

    /// The dual of what hits save by some measure.
    fn dual(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        saved: impl Fn(Time, u32) -> f64,
        stop: Stop,
    ) -> Dual {
        let block_tokens = u64::from(trace.workload.block_tokens());
        let slots = |bytes: u64| bytes as f64 / self.block_bytes as f64;
        let of_state = |blocks: u32| slots(self.state.at(u64::from(blocks) * block_tokens));
        let state = StateWeight {
            slots: &of_state,
            cuts: &self.cuts,
        };
        let capacity_slots = slots(capacity_bytes);
        let program = PrefixProgram::new(
            &trace.intervals,
            saved,
            capacity_slots,
            Some(state),
            Relaxation::Fitting,
        );
        let first = first_dual(&program, stop);
        better_dual(&program, &first, stop)
    }

    /// Replays the schedules: by next use alone, and by what a candidate saves then, less rents.
    fn try_schedules(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        [of_seconds, of_tokens]: [&Dual; 2],
        options: &OracleOptions,
        best: &mut Best,
    ) {
        let is_close = |lower: f64, dual: &Dual| dual.upper - lower <= options.gap * dual.upper;
        let seconds = |time, from, end| trace.saved(time, end) - trace.saved(time, from);
        let block_tokens = f64::from(trace.workload.block_tokens());
        let tokens = |_, from: u32, end: u32| f64::from(end - from) * block_tokens;
        let none = Prices::constant(trace.requests(), 0.0);
        let bytes = capacity_bytes;
        best.offer(trace, self.schedule(trace, bytes, &none, &|_, _, _| 0.0));
        for times in DUAL_RENTS {
            if !is_close(best.seconds, of_seconds) {
                let rents = of_seconds.prices.times(times);
                best.offer(trace, self.schedule(trace, bytes, &rents, &seconds));
            }
            if !is_close(best.hit_tokens as f64, of_tokens) {
                let rents = of_tokens.prices.times(times);
                best.offer(trace, self.schedule(trace, bytes, &rents, &tokens));
            }
        }
    }

    fn schedule<G>(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        rents: &Prices,
        gain: &G,
    ) -> Hits
    where
        G: Fn(Time, u32, u32) -> f64,
    {
        let mut policy = StateBelady {
            next_use: &trace.next_use,
            rents,
            gain,
            block_bytes: self.block_bytes,
            resumed_until: &self.resumed_until,
            touched: vec![NEVER; trace.workload.distinct_blocks() as usize],
            ranked: Ranked::new(),
        };
        self.replay(trace, capacity_bytes, &mut policy)
    }

    fn replay(
        &self,
        trace: &PricedTrace<'_>,
        capacity_bytes: u64,
        policy: &mut dyn Policy,
    ) -> Hits {
        let config = CacheConfig {
            capacity_bytes,
            block_bytes: self.block_bytes,
            block_tokens: trace.workload.block_tokens(),
            evict_unit: EvictUnit::Block,
            state: Some(self.state),
        };
        replay_in(trace.workload, config, &Unpriced, Track::Online, policy)
    }
}

/// What a sum of token counts may be off by, as a share.
const ROUNDING: f64 = 1e-12;

/// LRU over leaves and states, which saves them where `all` does.
#[derive(Default)]
struct StateLru(Ranked<(Tick, Reverse<u32>, Tick)>);

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

/// Evicts what saves least per byte at its next use, less the rents until then; of equals, what is used last.
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
        let touched = self.touched[last_block.index()];
        self.next_use.after(touched, depth).time
    }
}

impl<G: Fn(Time, u32, u32) -> f64> EvictionPolicy for StateBelady<'_, G> {
    fn offer(&mut self, candidate: &Candidate) {
        let end = candidate.depth_blocks + candidate.blocks;
        let next = self.next_use_of(candidate.last_block, end - 1);
        // A leaf without a state saves nothing, whenever it is used.
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
            self.touched[block.index()] = request.index.0;
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
        let resumed = |end: &u32| {
            let last = request.path[*end as usize - 1];
            self.resumed_until[last.index()] > request.index.0
        };
        let below_hit = request.hit_blocks + 1..=insertion.resident_blocks;
        positions.extend(below_hit.filter(resumed));
    }
}
