//! The golden cases of an independent implementation: optima, bounds, and the policies that the oracle compares.

use std::collections::{BTreeMap, BTreeSet};

use policy_api::BlockId;
use serde_json::{Value, json};
use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::bracket::OracleOptions;
use crate::curve::Curve;
use crate::exact::optimum;
use crate::flat::flat_belady_blocks;
use crate::intervals::Intervals;
use crate::next_use::{NextUse, Reading};
use crate::prefix_program::Relaxation;
use crate::schedule::replay;

use super::lp::{Closure, interval_program};
use super::support::{certified, pfoo_bound, prepared, saved, serve, total};
use testkit::golden::{Golden, cost, golden_cases};

/// The golden files' names of the two cost models.
const COSTS: [(&str, &str); 2] = [("seed", "course"), ("causal", "causal")];

fn close(found: f64, wanted: &Value, relative: f64) -> bool {
    let wanted = wanted.as_f64().unwrap();
    (found - wanted).abs() <= relative * wanted.abs().max(1e-9)
}

/// Calls `check` with every golden case, capacity and what is expected there.
fn for_each_expected(mut check: impl FnMut(&Golden, u64, &Value)) {
    let Some(cases) = golden_cases() else { return };
    let mut checked = 0;
    for case in &cases {
        for (capacity, expected) in case.expected.as_object().unwrap() {
            check(case, capacity.parse().unwrap(), expected);
            checked += 1;
        }
    }
    assert!(checked > 40, "only {checked} golden results were found");
}

/// Compares hits, tokens and seconds with what is expected of a policy.
fn check_hits(case: &Golden, hit_blocks: &[u32], expected: &Value, what: &str) {
    let workload = &case.workload;
    assert_eq!(json!(hit_blocks), expected["hit_pages"], "{what}");
    let tokens = total(hit_blocks) * u64::from(workload.block_tokens());
    assert_eq!(json!(tokens), expected["hit_tokens"], "{what}");
    for (golden_name, cost_name) in COSTS {
        let cost = cost(cost_name);
        let seconds: f64 = (0..)
            .zip(hit_blocks)
            .map(|(time, hit)| saved(workload, cost.as_ref(), time, *hit))
            .sum();
        let wanted = &expected[format!("saved_{golden_name}_s")];
        assert!(close(seconds, wanted, 1e-9), "{what}: {seconds} {wanted}");
    }
}

#[test]
fn inversions_are_counted() {
    let Some(cases) = golden_cases() else { return };
    for case in &cases {
        let intervals = Intervals::new(&case.workload, 0);
        let counted = json!(intervals.inversions());
        assert_eq!(counted, case.facts["inverted_intervals"], "{}", case.name);
    }
}

#[test]
fn belady_comes_out_request_by_request() {
    for_each_expected(|case, capacity, expected| {
        let intervals = Intervals::new(&case.workload, 0);
        let next_use = NextUse::new(&intervals, Reading::GainOrNever);
        let mut policy = Belady::new(&next_use, Bypass::Allowed);
        let hits = replay(&case.workload, capacity, &mut policy);
        let what = format!("{} at {capacity}", case.name);
        check_hits(case, &hits, &expected["belady"], &what);
    });
}

#[test]
fn second_occurrence_comes_out_with_its_residents() {
    for_each_expected(|case, capacity, expected| {
        let expected = &expected["second_occurrence_lru"];
        let admission = "second-occurrence(memory=unbounded)";
        let served = serve(&case.workload, capacity, "lru", admission);
        let what = format!("{} at {capacity}", case.name);
        check_hits(case, &served.hit_blocks, expected, &what);
        let names = first_appearances(&case.workload);
        let wanted: BTreeSet<BlockId> = expected["final_resident"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| names[&(at[0].as_u64().unwrap(), at[1].as_u64().unwrap())])
            .collect();
        assert_eq!(
            served.resident.into_iter().collect::<BTreeSet<_>>(),
            wanted,
            "{what}"
        );
    });
}

/// Blocks by their first appearance, as the golden files name them.
fn first_appearances(workload: &Workload) -> BTreeMap<(u64, u64), BlockId> {
    let mut names = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (index, request) in (0..).zip(workload.requests()) {
        for (position, &block) in (0..).zip(workload.path(request)) {
            if seen.insert(block) {
                names.insert((index, position), block);
            }
        }
    }
    names
}

#[test]
fn curves_pass_through_the_policies() {
    for_each_expected(|case, capacity, expected| {
        let workload = &case.workload;
        let intervals = Intervals::new(workload, 0);
        let hits = |curve: Curve| json!(curve.hit_blocks(capacity));
        let what = format!("{} at {capacity}", case.name);
        let lru = hits(Curve::lru(workload, &intervals));
        assert_eq!(lru, expected["lru"]["total_hit_pages"], "{what}");
        let second = hits(Curve::second_occurrence_lru(workload, 0));
        let wanted = &expected["second_occurrence_lru"]["total_hit_pages"];
        assert_eq!(second, *wanted, "{what}");
        let flat = hits(Curve::flat_belady(workload, &intervals));
        assert_eq!(
            flat, expected["upper_bounds"]["flat_belady_pages"],
            "{what}"
        );
    });
}

#[test]
fn the_dynamic_program_finds_the_optima() {
    for_each_expected(|case, capacity, expected| {
        let workload = &case.workload;
        let capacity = u32::try_from(capacity).unwrap();
        let what = format!("{} at {capacity}", case.name);
        let blocks = optimum(workload, capacity, |_, hit| f64::from(hit)).unwrap();
        assert_eq!(
            json!(blocks as u64),
            expected["optimum"]["hit_pages"],
            "{what}"
        );
        for (golden_name, cost_name) in COSTS {
            let cost = cost(cost_name);
            let saved = |time, hit| saved(workload, cost.as_ref(), time, hit);
            let found = optimum(workload, capacity, saved).unwrap();
            let wanted = &expected["optimum"][format!("saved_{golden_name}_s")];
            assert!(close(found, wanted, 1e-9), "{what}: {found} {wanted}");
        }
    });
}

#[test]
fn upper_bounds_come_out() {
    for_each_expected(|case, capacity, expected| {
        let expected = &expected["upper_bounds"];
        let workload = &case.workload;
        let intervals = Intervals::new(workload, 0);
        let what = format!("{} at {capacity}", case.name);
        let flat = flat_belady_blocks(&intervals, capacity);
        assert_eq!(json!(flat), expected["flat_belady_pages"], "{what}");
        let pages = pfoo_bound(&intervals, |_, hit| f64::from(hit), capacity);
        assert!(close(pages, &expected["pfoo_u_pages"], 1e-6), "{what}");
        let course = cost("course");
        let saved = |time, hit| saved(workload, course.as_ref(), time, hit);
        let seconds = pfoo_bound(&intervals, saved, capacity);
        assert!(close(seconds, &expected["pfoo_u_seed_s"], 1e-6), "{what}");
    });
}

#[test]
fn linear_programs_come_out_and_the_dual_stays_above_them() {
    for_each_expected(|case, capacity, expected| {
        let workload = &case.workload;
        let capacity = u32::try_from(capacity).unwrap();
        let what = format!("{} at {capacity}", case.name);
        for (golden_name, cost_name) in COSTS {
            let cost = cost(cost_name);
            let saved = |time, hit| saved(workload, cost.as_ref(), time, hit);
            let solve = |closure| interval_program(workload, capacity, closure, saved);
            for (closure, name) in [
                (Closure::Flat, "flat_lp"),
                (Closure::Prefix, "prefix_lp"),
                (Closure::Tree, "tree_lp"),
            ] {
                let wanted = &expected["upper_bounds"][format!("{name}_{golden_name}_s")];
                if !wanted.is_null() {
                    let found = solve(closure);
                    assert!(
                        close(found, wanted, 1e-6),
                        "{what} {name}: {found} {wanted}"
                    );
                }
            }
            let intervals = Intervals::new(workload, 0);
            for (closure, relaxation) in [
                (Closure::Prefix, Relaxation::Slots),
                (Closure::Fitting, Relaxation::Fitting),
            ] {
                let upper = certified(&intervals, saved, u64::from(capacity), relaxation, 4000);
                let least = solve(closure);
                let what = format!("{what} {closure:?}: {upper} {least}");
                assert!(upper >= least * (1.0 - 1e-6), "{what}");
                assert!(upper <= least * 1.0005, "{what}");
            }
        }
    });
}

#[test]
fn brackets_hold_the_optimum() {
    for_each_expected(|case, capacity, expected| {
        let what = format!("{} at {capacity}", case.name);
        for (golden_name, cost_name) in COSTS {
            let cost = cost(cost_name);
            let oracle = prepared(&case.workload, cost.as_ref(), 0);
            let found = oracle.bracket(capacity, &OracleOptions::default());
            let optimum = &expected["optimum"];
            let tokens = optimum["hit_tokens"].as_u64().unwrap();
            assert!(
                found.tokens.lower <= tokens && tokens <= found.tokens.upper,
                "{what}"
            );
            assert!(found.inversions > 0 || found.tokens.exact, "{what}");
            let seconds = optimum[format!("saved_{golden_name}_s")].as_f64().unwrap();
            assert!(found.seconds.lower <= seconds * (1.0 + 1e-9), "{what}");
            assert!(found.seconds.upper >= seconds * (1.0 - 1e-9), "{what}");
        }
    });
}
