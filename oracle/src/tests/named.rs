//! Small cases with a name: each a mistake that is easy to make.

use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::bracket::OracleOptions;
use crate::curve::Curve;
use crate::exact::optimum;
use crate::flat::flat_belady_blocks;
use crate::intervals::Intervals;
use crate::next_use::{NextUse, Reading};
use crate::schedule::replay;

use super::support::{Ask, aligned, ask, prepared, total, workload};
use testkit::golden::cost;

fn belady(workload: &Workload, capacity: u64, reading: Reading, bypass: Bypass) -> u64 {
    let next_use = NextUse::new(&Intervals::new(workload, 0), reading);
    total(&replay(
        workload,
        capacity,
        &mut Belady::new(&next_use, bypass),
    ))
}

fn best_blocks(workload: &Workload, capacity: u32) -> u64 {
    optimum(workload, capacity, |_, hit| f64::from(hit)).unwrap() as u64
}

/// Block 1 is touched without gain before its next hit, so it comes back for free: holding it until the hit wastes the
/// slot on which block 2 would have hit.
fn offered_again() -> Workload {
    workload(&[
        ask(&[1]),
        ask(&[2]),
        ask(&[3]),
        ask(&[3]),
        aligned(&[1]),
        ask(&[1]),
        ask(&[2]),
    ])
}

#[test]
fn a_next_use_that_looks_through_touches_without_gain_loses() {
    let workload = offered_again();
    assert_eq!(
        belady(&workload, 2, Reading::LookThrough, Bypass::Allowed),
        2
    );
    assert_eq!(
        belady(&workload, 2, Reading::GainOrNever, Bypass::Allowed),
        3
    );
    assert_eq!(best_blocks(&workload, 2), 3);
}

/// Every touch as a use, gainful or not: the naive reading. One slot, prompts a b b a, where b never gains.
#[test]
fn a_next_use_that_counts_touches_without_gain_loses_everything() {
    let workload = workload(&[ask(&[1]), aligned(&[2]), aligned(&[2]), ask(&[1])]);
    let intervals = Intervals::new(&workload, 0);
    assert_eq!(
        belady(&workload, 1, Reading::GainOrNever, Bypass::Allowed),
        1
    );
    // The naive reading would keep b for its touch at 2, which is not gainful, and so lose a's hit at 3.
    let naive = intervals.ending_at(2)[0];
    assert_eq!((naive.from, naive.blocks, naive.gainful), (1, 1, 0));
}

/// Keeping the child 2 for its hit keeps its parent 1 too, though 1 comes back for free (a touch without gain) before it is
/// wanted. Flat Belady forgets that, so its bound of 3 hits at two blocks is out of reach.
#[test]
fn an_inversion_is_counted_and_parts_the_bounds() {
    let child = [1, 2];
    let asks = [
        ask(&child),
        ask(&[3]),
        ask(&[3]),
        aligned(&[1]),
        ask(&child),
    ];
    let workload = workload(&asks);
    let intervals = Intervals::new(&workload, 0);
    assert_eq!(intervals.inversions(), 1);
    assert_eq!(flat_belady_blocks(&intervals, 2), 3);
    assert_eq!(best_blocks(&workload, 2), 2);
    let cost = cost("course");
    let found = prepared(&workload, cost.as_ref(), 0).bracket(2, &OracleOptions::default());
    let block_tokens = u64::from(workload.block_tokens());
    assert_eq!(found.tokens.lower, 2 * block_tokens);
    assert_eq!(found.tokens.upper, 3 * block_tokens);
    assert!(!found.tokens.exact && found.inversions == 1);
}

/// Two identical requests of four one-token blocks: sharing with the *later* request is no hit of the first, so the
/// ceiling is 3 of 8 tokens (the last token is always computed), not 6 of 8.
#[test]
fn an_upper_bound_that_counts_later_sharing_is_false() {
    let twice = workload(&[aligned(&[1, 2, 3, 4]), aligned(&[1, 2, 3, 4])]);
    let intervals = Intervals::new(&twice, 0);
    assert_eq!(intervals.ceiling_blocks(), 3);
    assert_eq!(flat_belady_blocks(&intervals, 100), 3);
    let cost = cost("course-linear");
    let ceiling = prepared(&twice, cost.as_ref(), 0).trace().ceiling;
    assert_eq!(ceiling.hit_tokens, 3 * u64::from(twice.block_tokens()));
}

/// Hot blocks and a scan. An engine that must hold a running request's blocks loses what bypass keeps.
#[test]
fn without_bypass_a_scan_costs_hits() {
    let scan = [ask(&[1]), ask(&[2]), ask(&[1]), ask(&[3]), ask(&[1])];
    let workload = workload(&scan);
    assert_eq!(
        belady(&workload, 1, Reading::GainOrNever, Bypass::Allowed),
        2
    );
    assert_eq!(
        belady(&workload, 1, Reading::GainOrNever, Bypass::Denied),
        0
    );
    assert_eq!(
        belady(&workload, 2, Reading::GainOrNever, Bypass::Denied),
        2
    );
}

/// Without a column of next uses an oracle must compute them: then it is the best of all, not the worst.
#[test]
fn next_use_is_computed_from_the_trace_alone() {
    let workload = offered_again();
    let lru = Curve::lru(&workload, &Intervals::new(&workload, 0));
    for capacity in 0..4 {
        let hits = belady(&workload, capacity, Reading::GainOrNever, Bypass::Allowed);
        assert!(hits >= lru.hit_blocks(capacity), "at {capacity}");
    }
}

#[test]
fn empty_traces_and_caches_are_bracketed_by_nothing() {
    let nothing: [Ask; 0] = [];
    let one = [ask(&[1, 2])];
    let cost = cost("course");
    for asks in [&nothing[..], &one, &[aligned(&[]), aligned(&[])]] {
        let workload = workload(asks);
        let oracle = prepared(&workload, cost.as_ref(), 0);
        for capacity in [0, 5] {
            let found = oracle.bracket(capacity, &OracleOptions::default());
            assert_eq!((found.tokens.upper, found.tokens.exact), (0, true));
            assert_eq!(
                (found.seconds.lower, found.seconds.upper, found.seconds.gap),
                (0.0, 0.0, 0.0)
            );
        }
    }
    let workload = workload(&[ask(&[1]), ask(&[1])]);
    let found = prepared(&workload, cost.as_ref(), 0).bracket(0, &OracleOptions::default());
    assert_eq!((found.tokens.upper, found.seconds.upper), (0, 0.0));
}
