//! Real traces, whole: figures of independent implementations, and how close the bounds come.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use trace::{LoadOptions, Provenance, Request, Workload, WorkloadBuilder};

use crate::belady::{Belady, Bypass};
use crate::bracket::OracleOptions;
use crate::curve::Curve;
use crate::flat::flat_belady_blocks;
use crate::intervals::Intervals;
use crate::next_use::{NextUse, Reading};
use crate::prefix_program::Relaxation;
use crate::schedule::replay;

use super::support::{certified, prepared, saved, serve, total};
use testkit::golden::cost;

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

/// Which blocks of a Mooncake prompt count.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    /// Full ones, as in this project.
    Full,
    /// The partial last one too, and all of them can hit.
    Partial,
}

/// The Mooncake conversation trace, and the true lengths of its prompts.
fn mooncake_keeping(keep: Keep) -> Option<(Workload, Vec<u32>)> {
    let text = fs::read_to_string(shared("mooncake/conversation_trace.jsonl")?).unwrap();
    let mut builder = WorkloadBuilder::new(BLOCK_TOKENS);
    let mut lengths = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let length = row["input_length"].as_u64().unwrap() as u32;
        let mut path = ids(&row["hash_ids"]);
        let prompt_tokens = match keep {
            Keep::Full => length,
            // One token more than the blocks hold, so that the last of them may hit.
            Keep::Partial => path.len() as u32 * BLOCK_TOKENS + 1,
        };
        path.truncate((prompt_tokens / BLOCK_TOKENS) as usize);
        push(&mut builder, prompt_tokens, &path);
        lengths.push(length);
    }
    Some((builder.finish(Provenance::default()), lengths))
}

fn mooncake() -> Option<Workload> {
    Some(mooncake_keeping(Keep::Full)?.0)
}

fn ids(list: &Value) -> Vec<u64> {
    let ids = list.as_array().unwrap().iter();
    ids.map(|id| id.as_u64().unwrap()).collect()
}

fn push(builder: &mut WorkloadBuilder, prompt_tokens: u32, path: &[u64]) {
    let request = Request {
        prompt_tokens,
        prompt_blocks: path.len() as u32,
        ..Request::default()
    };
    builder.push(request, path).unwrap();
}

/// The Claude Code sessions, each in its own id space, their starts spread over four hours.
fn claude() -> Option<Workload> {
    let folder = shared("claude-code-sessions")?;
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let mut requests = Vec::new();
    for (index, file) in (0_u64..).zip(&files) {
        let text = zstd::decode_all(fs::File::open(file).unwrap()).unwrap();
        let session: Value = serde_json::from_slice(&text).unwrap();
        // The golden ratio spreads any number of starts evenly.
        let start = (index as f64 * 0.618_033_988_749_895).fract() * 4.0 * 3600.0;
        flatten(&session["requests"], start, index << 32, &mut requests);
    }
    requests.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut builder = WorkloadBuilder::new(64);
    for (_, prompt_tokens, path) in &requests {
        push(&mut builder, *prompt_tokens, path);
    }
    Some(builder.finish(Provenance::default()))
}

/// The requests of a session and of its sub-agents: time, prompt tokens, path.
fn flatten(items: &Value, start: f64, id_space: u64, requests: &mut Vec<(f64, u32, Vec<u64>)>) {
    for item in items.as_array().unwrap() {
        let time = start + item["t"].as_f64().unwrap();
        if item["type"] == "subagent" {
            flatten(&item["requests"], time, id_space, requests);
        } else {
            let path = ids(&item["hash_ids"])
                .iter()
                .map(|id| id_space | id)
                .collect();
            requests.push((time, item["in"].as_u64().unwrap() as u32, path));
        }
    }
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
    let oracle = prepared(workload, cost.as_ref(), 0);
    for (capacity, most) in most_percent {
        let found = oracle.bracket(*capacity, &OracleOptions::default());
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
fn mooncake_seconds_are_close_in_small_caches() {
    let Some(workload) = mooncake() else { return };
    check_gaps(&workload, "course", &[(256, 1.0), (1_024, 0.5)]);
    check_gaps(&workload, "causal", &[(256, 5.5), (1_024, 1.6)]);
}

#[test]
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

/// Every eviction policy of the registry, and every admission policy before LRU, against the upper bounds.
fn check_policies(workload: &Workload, capacities: &[u64]) {
    let pairs: Vec<_> = policies::EVICTION
        .iter()
        .map(|eviction| (eviction.name, "all"))
        .chain(
            policies::ADMISSION
                .iter()
                .map(|admission| ("lru", admission.name)),
        )
        .collect();
    let costs = ["course", "causal"].map(cost);
    let oracles = [0, 1].map(|index: usize| prepared(workload, costs[index].as_ref(), 0));
    for capacity in capacities {
        let options = OracleOptions::default();
        let brackets = [0, 1].map(|index: usize| oracles[index].bracket(*capacity, &options));
        for (eviction, admission) in &pairs {
            let hits = serve(workload, *capacity, eviction, admission).hit_blocks;
            let tokens = total(&hits) * u64::from(workload.block_tokens());
            let who = format!("{eviction} + {admission} at {capacity}");
            assert!(tokens <= brackets[0].tokens.upper, "{who}");
            for (cost, bracket) in costs.iter().zip(&brackets) {
                let saved = |(time, hit): (u32, &u32)| saved(workload, cost.as_ref(), time, *hit);
                let seconds: f64 = (0..).zip(&hits).map(saved).sum();
                let upper = bracket.seconds.upper * (1.0 + 1e-9);
                assert!(seconds <= upper, "{who} under {}", cost.name);
            }
        }
    }
}

#[test]
fn no_policy_passes_the_upper_bounds_on_the_examples() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_trace = |file: &PathBuf| file.extension().is_some_and(|end| end == "parquet");
    let traces: Vec<_> = files.filter(is_trace).collect();
    assert!(!traces.is_empty());
    for file in traces {
        let workload = trace::load(&file, &LoadOptions::default())
            .unwrap()
            .workload;
        let share = |percent: u64| u64::from(workload.distinct_blocks()) * percent / 100;
        check_policies(&workload, &[share(5), share(30)]);
    }
}

#[test]
fn no_policy_passes_the_upper_bounds_on_mooncake() {
    let Some(workload) = mooncake() else { return };
    check_policies(&workload, &[256, 1_024, 4_096, 16_384]);
}

/// The reference simulator's offline policy: it gives the partial last block a slot, counts its tokens when the whole
/// prompt comes again, and warms up with half of the requests. Told to do the same, our upper bound is never below it.
#[test]
fn the_reference_simulators_offline_policy_stays_below_the_upper_bound() {
    let Some(table) = shared("reference-hit-rates/mooncake_conversation.csv") else {
        return;
    };
    let Some((workload, prompt_tokens)) = mooncake_keeping(Keep::Partial) else {
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
        let upper = certified(&intervals, saved, capacity, Relaxation::Slots, 600);
        let share = reference as f64 / upper;
        println!("at {capacity} blocks the reference reaches {share:.4} of the bound");
        assert!((0.9..=1.0).contains(&share), "at {capacity}: {share}");
        checked += 1;
    }
    assert_eq!(checked, 8);
}
