//! The bracket where KV is kept per token, so that a prompt resumes at any block.
//!
//! Tokens: flat Belady from above, Belady on the tree from below. Seconds: prices from above (`dual.rs`), schedules that pay
//! those prices as rent from below (`priced.rs`).

use crate::belady::{Belady, Bypass};
use crate::best::{Best, DUAL_RENTS};
use crate::bracket::{Bracket, OracleOptions, SecondBounds, TokenBounds, relative_gap};
use crate::certificate::{Certificate, SharePrices};
use crate::curve::lru_hits;
use crate::dual::{Dual, Stop, pfoo};
use crate::dual_search::{better_dual, first_dual};
use crate::flat::flat_belady_blocks;
use crate::next_use::{NextUse, Reading};
use crate::prefix_program::{GainTrend, PrefixProgram, Relaxation};
use crate::priced::{Cut, PricedBelady};
use crate::priced_trace::PricedTrace;
use crate::prices::Prices;
use crate::schedule::{Hits, replay};

/// Multiples of the PFOO price that are tried as the rent of every gap.
const CONSTANT_RENTS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 5.0];

/// Multiples of the dual prices that are tried besides where prompts are longer than the cache: single schedules cannot keep
/// fractions of long hits, so they get less for their slots.
const HIGH_RENTS: [f64; 4] = [1.25, 1.5, 2.0, 3.0];

/// The bracket at one capacity, and the schedule that its lower bound in seconds stands on.
pub(crate) fn search(
    trace: &PricedTrace<'_>,
    capacity_blocks: u64,
    options: &OracleOptions,
) -> (Bracket, Hits) {
    let lru_hits = lru_hits(trace.workload, &trace.intervals, capacity_blocks);
    let lru = trace.recovered(&lru_hits);
    let mut best = Best::new(lru_hits, lru);
    let most_hit_blocks = flat_belady_blocks(&trace.intervals, capacity_blocks);
    let tokens = token_bounds(trace, capacity_blocks, most_hit_blocks, &mut best);
    let seconds = second_bounds(trace, capacity_blocks, most_hit_blocks, &mut best, options);
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

fn token_bounds(
    trace: &PricedTrace<'_>,
    capacity_blocks: u64,
    most_hit_blocks: u64,
    best: &mut Best,
) -> TokenBounds {
    let upper = trace.to_tokens(most_hit_blocks);
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
    most_hit_blocks: u64,
    best: &mut Best,
    options: &OracleOptions,
) -> SecondBounds {
    let stop = Stop {
        steps: options.steps,
        gap: options.gap,
        lower: best.seconds,
    };
    let UpperBound {
        fitting,
        first,
        better,
        ..
    } = upper_bound(trace, capacity_blocks, stop);
    let of_tokens = most_hit_blocks as f64 * per_hit_block(trace);
    let upper = better.upper.min(of_tokens);
    let price = pfoo(&fitting, capacity_blocks as f64).price;
    let mut rents = multiples(&first.prices, &DUAL_RENTS);
    let constant = Prices::constant(trace.requests(), price);
    rents.extend(multiples(&constant, &CONSTANT_RENTS));
    if better.steps > first.steps {
        rents.extend(multiples(&better.prices, &DUAL_RENTS));
    }
    if fitting.is_cut() {
        // Prices that also count hits too long to fit are higher, which suits schedules: they cannot hold fractions.
        rents.extend(multiples(&better.prices, &HIGH_RENTS));
        let loose = program(trace, capacity_blocks, Relaxation::Slots);
        rents.extend(multiples(&first_dual(&loose, stop).prices, &DUAL_RENTS));
        let price = pfoo(&loose, capacity_blocks as f64).price;
        let constant = Prices::constant(trace.requests(), price);
        rents.extend(multiples(&constant, &CONSTANT_RENTS));
    }
    let cuts = cuts(fitting.trend());
    let with_cuts = |prices| cuts.iter().map(move |cut| (prices, *cut));
    let saved = |time, hit| trace.saved(time, hit);
    for (prices, cut) in rents.iter().flat_map(with_cuts) {
        if upper - best.seconds <= options.gap * upper {
            break;
        }
        let mut policy = PricedBelady::new(&trace.next_use, prices, &saved, cut, fitting.trend());
        best.offer(trace, replay(trace.workload, capacity_blocks, &mut policy));
    }
    SecondBounds {
        lower: best.seconds,
        upper,
        gap: relative_gap(best.seconds, upper),
        steps: better.steps,
    }
}

/// Prices of the program in which hits fit, and better ones of the closest program.
struct UpperBound {
    fitting: PrefixProgram,
    first: Dual,
    better: Dual,
    /// Into how many shares the closest program divides the capacity, by kind of its rows after the slots.
    divisors: Vec<u32>,
}

fn upper_bound(trace: &PricedTrace<'_>, capacity_blocks: u64, stop: Stop) -> UpperBound {
    let fitting = program(trace, capacity_blocks, Relaxation::Fitting);
    let first = first_dual(&fitting, stop);
    if fitting.trend() == GainTrend::Equal || stop.reached(first.upper) {
        return UpperBound {
            better: better_dual(&fitting, &first, stop),
            first,
            fitting,
            divisors: Vec::new(),
        };
    }
    let closest = program(trace, capacity_blocks, Relaxation::Shares);
    let divisor = |room: &f64| *room as u32 + 1;
    UpperBound {
        better: better_dual(&closest, &first, stop),
        first,
        fitting,
        divisors: closest.room()[1..].iter().map(divisor).collect(),
    }
}

fn program(trace: &PricedTrace<'_>, capacity_blocks: u64, relaxation: Relaxation) -> PrefixProgram {
    let saved = |time, hit| trace.saved(time, hit);
    let slots = capacity_blocks as f64;
    PrefixProgram::new(&trace.intervals, saved, slots, None, relaxation)
}

/// The most that a hit saves per block, rounded up.
fn per_hit_block(trace: &PricedTrace<'_>) -> f64 {
    trace.most_per_block * (1.0 + f64::EPSILON)
}

/// The upper bound at one capacity with its proof.
pub(crate) fn certificate(
    trace: &PricedTrace<'_>,
    capacity_blocks: u64,
    options: &OracleOptions,
) -> Certificate {
    let stop = Stop {
        steps: options.steps,
        gap: options.gap,
        lower: 0.0,
    };
    let found = upper_bound(trace, capacity_blocks, stop);
    let most_hit_blocks = flat_belady_blocks(&trace.intervals, capacity_blocks);
    let of_tokens = most_hit_blocks as f64 * per_hit_block(trace);
    let free = Certificate {
        capacity_blocks,
        warmup_requests: trace.warmup_requests as u32,
        seconds_upper: of_tokens,
        hit_block_price: per_hit_block(trace),
        slots_paid: vec![0.0; trace.requests()],
        shares: Vec::new(),
    };
    if of_tokens <= found.better.upper {
        return free;
    }
    let mut kinds = found.better.prices.by_kind().map(<[f64]>::to_vec);
    Certificate {
        seconds_upper: found.better.upper,
        hit_block_price: 0.0,
        slots_paid: kinds.next().unwrap_or_default(),
        shares: found
            .divisors
            .iter()
            .zip(kinds)
            .map(|(divisor, paid)| SharePrices {
                divisor: *divisor,
                paid,
            })
            .collect(),
        ..free
    }
}

/// The ways to rank a stretch that differ for gains of this trend.
fn cuts(trend: GainTrend) -> &'static [Cut] {
    match trend {
        GainTrend::Equal => &[Cut::ByStretch],
        GainTrend::Rising | GainTrend::Any => &[Cut::ByStretch, Cut::ByBlock],
    }
}

fn multiples(prices: &Prices, factors: &[f64]) -> Vec<Prices> {
    factors.iter().map(|factor| prices.times(*factor)).collect()
}
