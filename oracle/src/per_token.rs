//! The bracket where KV is kept per token, so that a prompt resumes at any block.
//!
//! Tokens: flat Belady from above, Belady on the tree from below. Seconds: prices from above (`dual.rs`), schedules that pay
//! those prices as rent from below (`priced.rs`).

use crate::belady::{Belady, Bypass};
use crate::bracket::{
    Best, Bracket, DUAL_RENTS, OracleOptions, SecondBounds, TokenBounds, relative_gap,
};
use crate::curve::lru_hits;
use crate::dual::{Prices, Stop, pfoo, prefix_dual};
use crate::flat::flat_belady_blocks;
use crate::gains::{GainTrend, Gains};
use crate::next_use::{NextUse, Reading};
use crate::priced::{Cut, PricedBelady};
use crate::priced_trace::PricedTrace;
use crate::schedule::{Hits, replay};

/// Multiples of the PFOO price that are tried as the rent of every gap.
const CONSTANT_RENTS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 5.0];

/// The bracket at one capacity, and the schedule that its lower bound in seconds stands on.
pub(crate) fn search(
    trace: &PricedTrace<'_>,
    capacity_blocks: u64,
    options: &OracleOptions,
) -> (Bracket, Hits) {
    let lru_hits = lru_hits(trace.workload, &trace.intervals, capacity_blocks);
    let lru = trace.recovered(&lru_hits);
    let mut best = Best::new(lru_hits, lru);
    let tokens = token_bounds(trace, capacity_blocks, &mut best);
    let seconds = second_bounds(trace, capacity_blocks, &mut best, options);
    let bracket = Bracket {
        capacity_blocks,
        inversions: trace.intervals.inversions(),
        tokens,
        seconds,
        lru,
        ceiling: trace.ceiling,
    };
    (bracket, best.hits)
}

fn token_bounds(trace: &PricedTrace<'_>, capacity_blocks: u64, best: &mut Best) -> TokenBounds {
    let upper = trace.to_tokens(flat_belady_blocks(&trace.intervals, capacity_blocks));
    let mut meets = |next_use: &NextUse| {
        let mut policy = Belady::new(next_use, Bypass::Allowed);
        best.offer(trace, replay(trace.workload, capacity_blocks, &mut policy));
        best.hit_tokens == upper
    };
    let exact = meets(&trace.next_use)
        || [Reading::LookThrough, Reading::Safe]
            .into_iter()
            .any(|reading| meets(&NextUse::new(&trace.intervals, reading)));
    TokenBounds {
        lower: best.hit_tokens,
        upper,
        exact,
    }
}

fn second_bounds(
    trace: &PricedTrace<'_>,
    capacity_blocks: u64,
    best: &mut Best,
    options: &OracleOptions,
) -> SecondBounds {
    let gains = Gains::new(&trace.intervals, |time, hit| trace.saved(time, hit));
    let stop = Stop {
        steps: options.steps,
        gap: options.gap,
        lower: best.seconds,
    };
    let dual = prefix_dual(&gains, capacity_blocks, stop);
    let upper = dual.upper;
    let price = pfoo(&gains, capacity_blocks).price;
    let found = DUAL_RENTS.map(|times| dual.prices.times(times));
    let constant = Prices::constant(trace.requests(), price);
    let constants = CONSTANT_RENTS.map(|times| constant.times(times));
    let rents: Vec<_> = found.into_iter().chain(constants).collect();
    let cuts = cuts(gains.trend());
    let with_cuts = |prices| cuts.iter().map(move |cut| (prices, *cut));
    for (prices, cut) in rents.iter().flat_map(with_cuts) {
        if upper - best.seconds <= options.gap * upper {
            break;
        }
        let saved = |time, hit| trace.saved(time, hit);
        let mut policy = PricedBelady::new(&trace.next_use, prices, &saved, cut, gains.trend());
        best.offer(trace, replay(trace.workload, capacity_blocks, &mut policy));
    }
    SecondBounds {
        lower: best.seconds,
        upper,
        gap: relative_gap(best.seconds, upper),
        steps: dual.steps,
    }
}

/// The ways to rank a stretch that differ for gains of this trend.
fn cuts(trend: GainTrend) -> &'static [Cut] {
    match trend {
        GainTrend::Equal => &[Cut::ByStretch],
        GainTrend::Rising | GainTrend::Any => &[Cut::ByStretch, Cut::ByBlock],
    }
}
