//! Real traces, whole: figures of independent implementations, and how close the bounds come.

use std::fs;
use std::path::PathBuf;

use oracle::{Belady, Bypass, replay};
use oracle::{
    Curve, Gains, Intervals, NextUse, Options, Oracle, Reading, Stop, flat_belady_blocks,
    prefix_dual,
};
use serde_json::Value;
use trace::{LoadOptions, Provenance, Request, Workload, WorkloadBuilder};
use trace_gen::import::{FORMATS, Job, Values};

use crate::golden_files::cost;
use crate::support::{serve, total};

const BLOCK_TOKENS: u32 = 512;

fn shared(file: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/data")
        .join(file);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no ../shared");
    None
}

/// A data set as its importer reads it by default.
fn imported(format: &str, path: &str) -> Option<Workload> {
    let input = shared(path)?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.parquet");
    let format = FORMATS.iter().find(|known| known.name == format).unwrap();
    let mut job = Job {
        format,
        input: &input,
        out: &file,
        strict: false,
        values: Values::new(format, []).unwrap(),
        progress: &mut |_, _| (),
    };
    job.run().unwrap();
    Some(
        trace::load(&file, &LoadOptions::default())
            .unwrap()
            .workload,
    )
}

/// The Mooncake conversation trace with full blocks only.
fn mooncake() -> Option<Workload> {
    imported("mooncake", "mooncake/conversation_trace.jsonl")
}

/// The Claude Code sessions, their starts spread over four hours.
fn claude() -> Option<Workload> {
    imported("agentx", "claude-code-sessions")
}

fn belady_blocks(workload: &Workload, capacity: u64) -> u64 {
    let next_use = NextUse::new(&Intervals::new(workload, 0), Reading::GainOrNever);
    total(&replay(
        workload,
        capacity,
        &mut Belady::new(&next_use, Bypass::Allowed),
    ))
}

/// Checks that tokens are exact and that the bounds in seconds are within a percentage of each other, by capacity.
fn check_gaps(workload: &Workload, cost_name: &str, most_percent: &[(u64, f64)]) {
    let cost = cost(cost_name);
    let oracle = Oracle::new(workload, cost.as_ref(), 0);
    for (capacity, most) in most_percent {
        let found = oracle.bracket(*capacity, &Options::default());
        let gap = found.seconds.gap * 100.0;
        assert!(found.tokens.exact, "{cost_name} at {capacity}");
        assert!(gap <= *most, "{cost_name} at {capacity}: {gap}%");
    }
}

#[test]
fn mooncake_belady_and_lru_are_known() {
    let Some(workload) = mooncake() else { return };
    let intervals = Intervals::new(&workload, 0);
    assert_eq!(intervals.inversions(), 0);
    for capacity in [8_192, 32_768] {
        assert_eq!(belady_blocks(&workload, capacity), 105_592);
        assert_eq!(flat_belady_blocks(&intervals, capacity), 105_592);
    }
    assert_eq!(Curve::lru(&workload, &intervals).hit_blocks(32_768), 97_963);
    assert_eq!(
        total(&serve(&workload, 8_192, "fifo", "all").hit_blocks),
        52_980
    );
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "in debug builds a small cache checks all it holds at every request"
)]
fn mooncake_curves_are_twenty_single_runs() {
    let Some(workload) = mooncake() else { return };
    let intervals = Intervals::new(&workload, 0);
    let lru = Curve::lru(&workload, &intervals);
    let second = Curve::second_occurrence_lru(&workload, 0);
    let flat = Curve::flat_belady(&workload, &intervals);
    for step in 0..20 {
        let capacity = (1.8_f64.powi(step) * 2.0) as u64;
        let run = |admission| total(&serve(&workload, capacity, "lru", admission).hit_blocks);
        assert_eq!(lru.hit_blocks(capacity), run("all"), "at {capacity}");
        let unbounded = "second-occurrence(memory=unbounded)";
        assert_eq!(second.hit_blocks(capacity), run(unbounded), "at {capacity}");
        assert_eq!(
            flat.hit_blocks(capacity),
            belady_blocks(&workload, capacity),
            "at {capacity}"
        );
    }
}

#[test]
fn mooncake_seconds_are_close() {
    let Some(workload) = mooncake() else { return };
    check_gaps(&workload, "course", &[(4_096, 0.1), (8_192, 1e-6)]);
    check_gaps(&workload, "causal", &[(4_096, 0.3), (8_192, 1e-6)]);
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "in debug builds a small cache checks all it holds at every request"
)]
fn mooncake_seconds_are_close_in_small_caches() {
    let Some(workload) = mooncake() else { return };
    check_gaps(&workload, "course", &[(256, 1.0), (1_024, 0.5)]);
    check_gaps(&workload, "causal", &[(256, 5.5), (1_024, 1.6)]);
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "in debug builds a small cache checks all it holds at every request"
)]
fn claude_sessions_are_exact_in_tokens_and_close_in_seconds() {
    let Some(workload) = claude() else { return };
    let share = |percent: u64| u64::from(workload.distinct_blocks()) * percent / 100;
    let limits = |smallest: f64, others: f64| {
        [
            (1, smallest),
            (2, others),
            (5, others),
            (10, others),
            (25, others),
        ]
        .map(|(percent, limit)| (share(percent), limit))
    };
    check_gaps(&workload, "course", &limits(0.4, 0.15));
    check_gaps(&workload, "causal", &limits(5.0, 5.0));
}

/// The reference simulator's offline policy: it gives the partial last block a slot, counts its tokens when the whole
/// prompt comes again, and warms up with half of the requests. Told to do the same, our upper bound is never below it.
#[test]
fn the_reference_simulators_offline_policy_stays_below_the_upper_bound() {
    let Some(table) = shared("reference-hit-rates/mooncake_conversation.csv") else {
        return;
    };
    let Some((workload, prompt_tokens)) = mooncake_with_partial_blocks() else {
        return;
    };
    let mut checked = 0;
    for row in fs::read_to_string(table).unwrap().lines() {
        let Some(fields) = row.strip_prefix("optimal,") else {
            continue;
        };
        let fields: Vec<u64> = fields
            .split(',')
            .take(4)
            .map(|field| field.parse().unwrap())
            .collect();
        let [capacity, warmup, _, reference] = fields[..] else {
            panic!("{row}")
        };
        let intervals = Intervals::new(&workload, warmup as u32);
        let saved =
            |time: u32, hit: u32| f64::from((hit * BLOCK_TOKENS).min(prompt_tokens[time as usize]));
        let stop = Stop {
            steps: 600,
            gap: 0.0,
            lower: 0.0,
        };
        let upper = prefix_dual(&Gains::new(&intervals, saved), capacity, stop).upper;
        let share = reference as f64 / upper;
        println!("at {capacity} blocks the reference reaches {share:.4} of the bound");
        assert!((0.9..=1.0).contains(&share), "at {capacity}: {share}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

/// The trace with a slot for the partial last block of every prompt, and the true lengths of the prompts.
fn mooncake_with_partial_blocks() -> Option<(Workload, Vec<u32>)> {
    let text = fs::read_to_string(shared("mooncake/conversation_trace.jsonl")?).unwrap();
    let mut builder = WorkloadBuilder::new(BLOCK_TOKENS);
    let mut lengths = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let ids = row["hash_ids"].as_array().unwrap();
        let path: Vec<_> = ids.iter().map(|id| id.as_u64().unwrap()).collect();
        let request = Request {
            // One token more than the blocks hold, so that the last of them may hit.
            prompt_tokens: path.len() as u32 * BLOCK_TOKENS + 1,
            prompt_blocks: path.len() as u32,
            ..Request::default()
        };
        builder.push(request, &path).unwrap();
        lengths.push(row["input_length"].as_u64().unwrap() as u32);
    }
    Some((builder.finish(Provenance::default()), lengths))
}
