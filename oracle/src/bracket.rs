//! The oracle's answer at one capacity: what is certainly out of reach, and what a schedule reached.

use roofline::CostModel;
use serde::Serialize;
use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::curve::lru_hits;
use crate::dual::{Prices, Stop, pfoo, prefix_dual};
use crate::flat::flat_belady_blocks;
use crate::gains::{CacheConfig, Gains};
use crate::intervals::{Intervals, Time};
use crate::next_use::{NextUse, Reading};
use crate::priced::{Cut, PricedBelady};
use crate::schedule::{Hits, replay};

/// How hard to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Good enough: the share of the upper bound by which the lower may miss it, in seconds.
    pub gap: f64,
    /// Subgradient steps at most.
    pub steps: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gap: 0.0,
            steps: 1200,
        }
    }
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
    /// A cache of unlimited capacity.
    pub ceiling: Recovered,
}

/// Bounds on hit tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TokenBounds {
    /// A schedule reached this.
    pub lower: u64,
    /// No policy passes this.
    pub upper: u64,
    /// Whether the two meet, which makes both the optimum.
    pub exact: bool,
}

/// Bounds on recovered seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SecondBounds {
    /// A schedule reached this.
    pub lower: f64,
    /// No policy passes this.
    pub upper: f64,
    /// The difference as a share of the upper bound; 0 where that is 0.
    pub gap: f64,
    /// Subgradient steps taken.
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

/// The bracket at one capacity. For several capacities, [`Oracle::new`] does the common work once.
pub fn bracket(
    workload: &Workload,
    cost: &dyn CostModel,
    capacity_blocks: u64,
    options: &Options,
) -> Bracket {
    Oracle::new(workload, cost, 0).bracket(capacity_blocks, options)
}

/// A trace and a cost model, prepared for brackets at any capacity. Shared between threads as it is.
pub struct Oracle<'a> {
    workload: &'a Workload,
    savings: Savings<'a>,
    warmup_requests: Time,
    intervals: Intervals,
    gain_or_never: NextUse,
    gains: Gains,
}

impl<'a> Oracle<'a> {
    /// Prepares a trace whose first `warmup_requests` make state but no figures. Takes the time of one cost evaluation a
    /// touch; holds a few dozen bytes an interval.
    pub fn new(workload: &'a Workload, cost: &'a dyn CostModel, warmup_requests: Time) -> Self {
        let savings = Savings::new(workload, cost);
        let intervals = Intervals::new(workload, warmup_requests);
        Self {
            gain_or_never: NextUse::new(&intervals, Reading::GainOrNever),
            gains: Gains::new(&intervals, |time, hit| savings.of(time, hit)),
            workload,
            savings,
            warmup_requests,
            intervals,
        }
    }

    pub(crate) fn workload(&self) -> &Workload {
        self.workload
    }

    pub(crate) fn cost(&self) -> &dyn CostModel {
        self.savings.cost
    }

    pub(crate) fn warmup(&self) -> usize {
        self.warmup_requests as usize
    }

    pub(crate) fn next_use(&self) -> &NextUse {
        &self.gain_or_never
    }

    /// Seconds that a request saves when its first blocks hit.
    pub(crate) fn saved(&self, time: Time, hit_blocks: u32) -> f64 {
        self.savings.of(time, hit_blocks)
    }

    /// The intervals of the trace.
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The bracket at one capacity.
    pub fn bracket(&self, capacity_blocks: u64, options: &Options) -> Bracket {
        self.search(capacity_blocks, options).0
    }

    /// The schedule that recovers the most seconds of those tried: what the lower bound in seconds stands on.
    pub fn best_schedule(&self, capacity_blocks: u64, options: &Options) -> Hits {
        self.search(capacity_blocks, options).1
    }

    fn search(&self, capacity_blocks: u64, options: &Options) -> (Bracket, Hits) {
        let lru = lru_hits(self.workload, &self.intervals, capacity_blocks);
        let lru_recovered = self.recovered(&lru);
        let mut best = Best {
            hits: lru,
            seconds: lru_recovered.prefill_seconds_recovered,
            hit_tokens: lru_recovered.hit_tokens,
        };
        let tokens = self.tokens(capacity_blocks, &mut best);
        let seconds = self.seconds(capacity_blocks, &mut best, options);
        let bracket = Bracket {
            capacity_blocks,
            inversions: self.intervals.inversions(),
            tokens,
            seconds,
            lru: lru_recovered,
            ceiling: self.ceiling(),
        };
        (bracket, best.hits)
    }

    /// What an engine that cannot refuse a running request's blocks reaches under Belady: a feasible lower bound for such
    /// engines. A policy that refuses may pass it.
    pub fn no_bypass(&self, capacity_blocks: u64) -> Recovered {
        let mut policy = Belady::new(&self.gain_or_never, Bypass::Denied);
        self.recovered(&replay(self.workload, capacity_blocks, &mut policy))
    }

    /// What an unlimited cache recovers.
    pub fn ceiling(&self) -> Recovered {
        Recovered {
            hit_tokens: self.to_tokens(self.intervals.ceiling_blocks()),
            prefill_seconds_recovered: self.gains.ceiling(),
        }
    }

    fn tokens(&self, capacity_blocks: u64, best: &mut Best) -> TokenBounds {
        let upper = self.to_tokens(flat_belady_blocks(&self.intervals, capacity_blocks));
        let mut meets = |next_use: &NextUse| {
            let mut policy = Belady::new(next_use, Bypass::Allowed);
            self.offer(replay(self.workload, capacity_blocks, &mut policy), best);
            best.hit_tokens == upper
        };
        let exact = meets(&self.gain_or_never)
            || [Reading::LookThrough, Reading::Safe]
                .into_iter()
                .any(|reading| meets(&NextUse::new(&self.intervals, reading)));
        TokenBounds {
            lower: best.hit_tokens,
            upper,
            exact,
        }
    }

    fn seconds(&self, capacity_blocks: u64, best: &mut Best, options: &Options) -> SecondBounds {
        let stop = Stop {
            steps: options.steps,
            gap: options.gap,
            lower: best.seconds,
        };
        let dual = prefix_dual(&self.gains, capacity_blocks, stop);
        let upper = dual.upper;
        let price = pfoo(&self.gains, capacity_blocks).price;
        let found = DUAL_RENTS.map(|times| dual.prices.times(times));
        let constant = Prices::constant(self.requests(), price);
        let constants = CONSTANT_RENTS.map(|times| constant.times(times));
        let rents: Vec<_> = found.into_iter().chain(constants).collect();
        let with_cuts = |prices| self.cuts().iter().map(move |cut| (prices, *cut));
        for (prices, cut) in rents.iter().flat_map(with_cuts) {
            if upper - best.seconds <= options.gap * upper {
                break;
            }
            self.offer(self.priced(capacity_blocks, prices, cut), best);
        }
        SecondBounds {
            lower: best.seconds,
            upper,
            gap: relative_gap(best.seconds, upper),
            steps: dual.steps,
        }
    }

    /// Priced Belady's schedule.
    fn priced(&self, capacity_blocks: u64, prices: &Prices, cut: Cut) -> Hits {
        let saved = |time, hit| self.savings.of(time, hit);
        let config = self.gains.config();
        let mut policy = PricedBelady::new(&self.gain_or_never, prices, &saved, cut, config);
        replay(self.workload, capacity_blocks, &mut policy)
    }

    /// Keeps the better of two schedules in seconds, and the most hit tokens of all.
    pub(crate) fn offer(&self, hits: Hits, best: &mut Best) {
        let found = self.recovered(&hits);
        best.hit_tokens = best.hit_tokens.max(found.hit_tokens);
        if found.prefill_seconds_recovered > best.seconds {
            best.seconds = found.prefill_seconds_recovered;
            best.hits = hits;
        }
    }

    /// The ways to rank a stretch that differ for this cost model.
    fn cuts(&self) -> &'static [Cut] {
        match self.gains.config() {
            CacheConfig::Equal => &[Cut::ByStretch],
            CacheConfig::Rising | CacheConfig::Any => &[Cut::ByStretch, Cut::ByBlock],
        }
    }

    pub(crate) fn recovered(&self, hits: &[u32]) -> Recovered {
        let measured = (0..).zip(hits).skip(self.warmup_requests as usize);
        let blocks = measured.clone().map(|(_, hit)| u64::from(*hit)).sum();
        Recovered {
            hit_tokens: self.to_tokens(blocks),
            // An empty sum of floats is -0.
            prefill_seconds_recovered: 0.0
                + measured
                    .map(|(time, hit)| self.savings.of(time, *hit))
                    .sum::<f64>(),
        }
    }

    pub(crate) fn to_tokens(&self, blocks: u64) -> u64 {
        blocks * u64::from(self.workload.block_tokens())
    }

    pub(crate) fn requests(&self) -> usize {
        self.workload.requests().len()
    }
}

/// The best of the schedules tried so far.
pub(crate) struct Best {
    pub(crate) hits: Hits,
    /// What `hits` recover.
    pub(crate) seconds: f64,
    /// The most hit tokens of any schedule tried.
    pub(crate) hit_tokens: u64,
}

/// Multiples of the dual prices that are tried as rents. The exact ones are right for fractions of blocks.
pub(crate) const DUAL_RENTS: [f64; 5] = [1.0, 0.95, 1.05, 0.9, 1.1];
/// Multiples of the PFOO price that are tried as the rent of every gap.
const CONSTANT_RENTS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 5.0];

impl Bracket {
    /// A policy's recovered seconds as a share of what no policy can pass; `None` where that is 0.
    pub fn capture(&self, recovered_seconds: f64) -> Option<f64> {
        (self.seconds.upper > 0.0).then(|| recovered_seconds / self.seconds.upper)
    }

    /// The share of the way from LRU to the upper bound that a policy goes; `None` where the bound is not above LRU.
    pub fn gap_closed(&self, recovered_seconds: f64) -> Option<f64> {
        let lru = self.lru.prefill_seconds_recovered;
        let way = self.seconds.upper - lru;
        (way > MEET * self.seconds.upper).then(|| (recovered_seconds - lru) / way)
    }
}

/// Where LRU is so near the bound, as a share of it, there is no way left to speak of.
const MEET: f64 = 1e-5;

pub(crate) fn relative_gap(lower: f64, upper: f64) -> f64 {
    if upper > 0.0 {
        (upper - lower) / upper
    } else {
        0.0
    }
}

/// Seconds of prefill that hits save.
struct Savings<'a> {
    workload: &'a Workload,
    cost: &'a dyn CostModel,
    /// Per request, what its prompt costs without any hit.
    cold_seconds: Vec<f64>,
}

impl<'a> Savings<'a> {
    fn new(workload: &'a Workload, cost: &'a dyn CostModel) -> Self {
        let cold = |request: &trace::Request| {
            let prompt_tokens = u64::from(request.prompt_tokens);
            cost.prefill(prompt_tokens, 0).seconds
        };
        Self {
            workload,
            cost,
            cold_seconds: workload.requests().iter().map(cold).collect(),
        }
    }

    fn of(&self, time: Time, hit_blocks: u32) -> f64 {
        let request = &self.workload.requests()[time as usize];
        let hit_tokens = u64::from(hit_blocks) * u64::from(self.workload.block_tokens());
        let warm = self
            .cost
            .prefill(u64::from(request.prompt_tokens), hit_tokens);
        self.cold_seconds[time as usize] - warm.seconds
    }
}
