//! Random small traces: every claim against brute force, and against every policy of the registry.

use cache::Track;
use proptest::prelude::*;
use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::bracket::OracleOptions;
use crate::curve::Curve;
use crate::exact::optimum;
use crate::flat::flat_belady_blocks;
use crate::intervals::{Intervals, NEVER};
use crate::next_use::{NextUse, Reading};
use crate::prefix_program::Relaxation;
use crate::record::{Evictions, Regret};
use crate::schedule::replay;

use super::lp::{Closure, interval_program};
use super::support::{
    asks, block_intervals, certified, costs, pair, pfoo_bound, prepared, saved, serve, total,
    touches, workload,
};

const REQUESTS: usize = 9;

fn belady(workload: &Workload, capacity: u64, reading: Reading, bypass: Bypass) -> u64 {
    let next_use = NextUse::new(&Intervals::new(workload, 0), reading);
    let mut policy = Belady::new(&next_use, bypass);
    total(&replay(workload, capacity, &mut policy))
}

/// The next use of a block after a touch, found by searching the trace.
fn next_use_by_search(workload: &Workload, reading: Reading, touched: u32, depth: u32) -> u32 {
    let block = workload.path(&workload.requests()[touched as usize])[depth as usize];
    let usable = |time: u32| workload.usable_blocks(&workload.requests()[time as usize]);
    let end = workload.requests().len() as u32;
    let later = |from: u32| (from + 1..end).find(|time| touches(workload, *time, block));
    let Some(next) = later(touched) else {
        return NEVER;
    };
    let inverted = || (touched + 1..next).any(|time| inverts(workload, time, touched, depth));
    match reading {
        _ if depth < usable(next) => match reading == Reading::Safe && inverted() {
            true => NEVER,
            false => next,
        },
        Reading::LookThrough => next_use_by_search(workload, reading, next, depth),
        _ => NEVER,
    }
}

/// Whether request `time` touches without gain an ancestor of the block at `depth` of the path of `touched`.
fn inverts(workload: &Workload, time: u32, touched: u32, depth: u32) -> bool {
    let path = workload.path(&workload.requests()[touched as usize]);
    let usable = workload.usable_blocks(&workload.requests()[time as usize]);
    (0..depth).any(|above| touches(workload, time, path[above as usize]) && above >= usable)
}

fn check_regret(regret: &Regret, block_tokens: u64) -> Result<(), TestCaseError> {
    let Regret {
        oracle,
        policy,
        premature,
        rejected,
        lucky,
        ..
    } = regret;
    prop_assert_eq!(
        oracle.hit_tokens + lucky.blocks * block_tokens,
        policy.hit_tokens + (premature.blocks + rejected.blocks) * block_tokens
    );
    let short = oracle.prefill_seconds_recovered - policy.prefill_seconds_recovered;
    let explained = premature.seconds + rejected.seconds - lucky.seconds;
    prop_assert!((short - explained).abs() <= 1e-9 * oracle.prefill_seconds_recovered.max(1e-9));
    for dimension in ["depth_blocks", "age_requests", "kind", "session"] {
        let parts = regret.by.iter().filter(|row| row.dimension == dimension);
        let parts: Vec<_> = parts.map(|row| row.evictions).collect();
        let sum = |field: fn(&Evictions) -> u64| parts.iter().map(field).sum::<u64>();
        prop_assert_eq!(
            sum(|e| e.premature_blocks),
            regret.evictions.premature_blocks
        );
        prop_assert_eq!(
            sum(|e| e.unaffordable_blocks),
            regret.evictions.unaffordable_blocks
        );
        prop_assert_eq!(
            sum(|e| e.dead_weight_blocks),
            regret.evictions.dead_weight_blocks
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn next_uses_and_inversions_are_those_of_a_search(asks in asks(REQUESTS)) {
        let workload = workload(&asks);
        let intervals = Intervals::new(&workload, 0);
        let inverted = block_intervals(&workload).into_iter().filter(|interval| {
            let between = interval.from + 1..interval.to;
            let mut between = between.filter(|time| inverts(&workload, *time, interval.from, interval.depth));
            interval.gainful && between.next().is_some()
        });
        prop_assert_eq!(intervals.inversions(), inverted.count() as u64);
        for reading in [Reading::GainOrNever, Reading::LookThrough, Reading::Safe] {
            let table = NextUse::new(&intervals, reading);
            for (time, request) in (0..).zip(workload.requests()) {
                for depth in 0..request.path_blocks {
                    let wanted = next_use_by_search(&workload, reading, time, depth);
                    let found = table.after(time, depth);
                    prop_assert_eq!(found.time, wanted, "{:?} {} {}", reading, time, depth);
                    let same = |above: u32| table.after(time, above).time == wanted;
                    prop_assert!((found.first_block..depth).all(same));
                    prop_assert!(found.first_block == 0 || !same(found.first_block - 1));
                }
            }
        }
    }

    #[test]
    fn tokens_are_exact_without_inversions_and_bracketed_with(asks in asks(REQUESTS), capacity in 0_u32..7) {
        let workload = workload(&asks);
        let intervals = Intervals::new(&workload, 0);
        let exact = optimum(&workload, capacity, |_, hit| f64::from(hit)).unwrap() as u64;
        let capacity = u64::from(capacity);
        let upper = flat_belady_blocks(&intervals, capacity);
        let tree = |reading| belady(&workload, capacity, reading, Bypass::Allowed);
        let (plain, through, safe) =
            (tree(Reading::GainOrNever), tree(Reading::LookThrough), tree(Reading::Safe));
        prop_assert!(exact <= upper);
        prop_assert!(plain.max(through).max(safe) <= exact);
        prop_assert!(safe + intervals.inversions() >= upper);
        prop_assert!(belady(&workload, capacity, Reading::GainOrNever, Bypass::Denied) <= exact);
        if intervals.inversions() == 0 {
            prop_assert_eq!(plain, upper);
        }
    }

    #[test]
    fn curves_are_single_runs_at_every_capacity(asks in asks(30), warmup in 0_u32..4) {
        let workload = workload(&asks);
        let intervals = Intervals::new(&workload, warmup);
        let lru = Curve::lru(&workload, &intervals);
        let second = Curve::second_occurrence_lru(&workload, warmup);
        let flat = Curve::flat_belady(&workload, &intervals);
        let run = |capacity, admission| {
            let hits = serve(&workload, capacity, "lru", admission).hit_blocks;
            total(&hits[(warmup as usize).min(hits.len())..])
        };
        for capacity in 0..=u64::from(workload.distinct_blocks()) + 2 {
            prop_assert_eq!(lru.hit_blocks(capacity), run(capacity, "all"));
            let unbounded = "second-occurrence(memory=unbounded)";
            prop_assert_eq!(second.hit_blocks(capacity), run(capacity, unbounded));
            prop_assert_eq!(flat.hit_blocks(capacity), flat_belady_blocks(&intervals, capacity));
        }
        let saturation = lru.saturation_blocks();
        prop_assert_eq!(lru.hit_blocks(saturation), intervals.ceiling_blocks());
        prop_assert!(saturation == 0 || lru.hit_blocks(saturation - 1) < intervals.ceiling_blocks());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn seconds_are_bracketed(asks in asks(REQUESTS), capacity in 0_u32..6, steps in 0_u32..200) {
        let workload = workload(&asks);
        for cost in costs() {
            let exact = optimum(&workload, capacity, |time, hit| saved(&workload, cost.as_ref(), time, hit));
            let exact = exact.unwrap();
            let oracle = prepared(&workload, cost.as_ref(), 0);
            let found = oracle.bracket(u64::from(capacity), &OracleOptions { steps, ..OracleOptions::default() }).seconds;
            prop_assert!(found.lower <= exact * (1.0 + 1e-9), "{} {} {exact}", cost.name, found.lower);
            prop_assert!(found.upper >= exact * (1.0 - 1e-9), "{} {} {exact}", cost.name, found.upper);
            prop_assert!(found.steps <= steps);
        }
    }

    #[test]
    fn a_warm_up_counts_for_nothing_but_its_state(asks in asks(REQUESTS), capacity in 0_u32..6, warmup in 0_u32..5) {
        let workload = workload(&asks);
        let measured = |time: u32| if time < warmup { 0.0 } else { 1.0 };
        let exact = optimum(&workload, capacity, |time, hit| measured(time) * f64::from(hit)).unwrap();
        let cost = &costs()[0];
        let found = prepared(&workload, cost.as_ref(), warmup).bracket(u64::from(capacity), &OracleOptions::default());
        let exact_tokens = exact as u64 * u64::from(workload.block_tokens());
        prop_assert!(found.tokens.lower <= exact_tokens && exact_tokens <= found.tokens.upper);
        let exact = optimum(&workload, capacity, |time, hit| measured(time) * saved(&workload, cost.as_ref(), time, hit));
        let exact = exact.unwrap();
        prop_assert!(found.seconds.lower <= exact * (1.0 + 1e-9) && exact * (1.0 - 1e-9) <= found.seconds.upper);
    }

    #[test]
    fn regret_adds_up(
        asks in asks(20),
        capacity in 0_u64..8,
        warmup in 0_u32..4,
        eviction in prop::sample::select(policies::EVICTION),
        admission in prop::sample::select(policies::ADMISSION),
    ) {
        let workload = workload(&asks);
        for cost in costs() {
            let oracle = prepared(&workload, cost.as_ref(), warmup);
            let mut policy = pair(&workload, capacity, eviction.name, admission.name);
            let options = OracleOptions { steps: 20, ..OracleOptions::default() };
            let regret = oracle.regret(capacity, &mut policy, Track::Online, &options);
            check_regret(&regret, u64::from(workload.block_tokens()))?;
        }
    }

    #[test]
    fn every_bound_lies_where_theory_puts_it(asks in asks(REQUESTS), capacity in 0_u32..6, steps in 0_u32..300) {
        let workload = workload(&asks);
        let intervals = Intervals::new(&workload, 0);
        for cost in costs() {
            let saved = |time, hit| saved(&workload, cost.as_ref(), time, hit);
            let exact = optimum(&workload, capacity, saved).unwrap();
            let solve = |closure| interval_program(&workload, capacity, closure, saved);
            let (tree, prefix) = (solve(Closure::Tree), solve(Closure::Prefix));
            let fitting = solve(Closure::Fitting);
            let slots = u64::from(capacity);
            let dual = |relaxation| certified(&intervals, saved, slots, relaxation, steps);
            let pfoo = pfoo_bound(&intervals, saved, slots);
            let tolerance = 1e-7 * pfoo;
            let chains = [
                vec![exact, tree, prefix, dual(Relaxation::Slots).min(pfoo)],
                vec![exact, fitting, dual(Relaxation::Fitting)],
                vec![exact, dual(Relaxation::Shares)],
            ];
            for chain in chains {
                prop_assert!(chain.is_sorted_by(|low, high| *low <= high + tolerance), "{} {chain:?}", cost.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_policy_of_the_registry_passes_the_upper_bound(asks in asks(20), capacity in 0_u64..9) {
        let workload = workload(&asks);
        let options = OracleOptions { steps: 20, ..OracleOptions::default() };
        let costs = costs();
        let brackets: Vec<_> = costs.iter()
            .map(|cost| prepared(&workload, cost.as_ref(), 0).bracket(capacity, &options))
            .collect();
        for eviction in policies::EVICTION {
            for admission in policies::ADMISSION {
                let hits = serve(&workload, capacity, eviction.name, admission.name).hit_blocks;
                let tokens = total(&hits) * u64::from(workload.block_tokens());
                for (cost, bracket) in costs.iter().zip(&brackets) {
                    let saved = |(time, hit): (u32, &u32)| saved(&workload, cost.as_ref(), time, *hit);
                    let seconds: f64 = (0..).zip(&hits).map(saved).sum();
                    let who = format!("{} + {} under {}", eviction.name, admission.name, cost.name);
                    prop_assert!(tokens <= bracket.tokens.upper, "{}", who);
                    prop_assert!(seconds <= bracket.seconds.upper * (1.0 + 1e-9), "{}", who);
                }
            }
        }
    }
}
