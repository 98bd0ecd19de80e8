//! The tables that `oracle` prints.

use oracle::{CurvePoint, Evictions, OracleRun, Regret, RegretRun};
use replay::TraceRecord;
use serde::Serialize;

use crate::csv_form::csv;
use crate::numbers::{bytes, grouped, percent};
use crate::plain::{plain, trace_line};

/// One block a trace: what it holds, then a row a capacity.
pub fn oracle_table(traces: &[TraceRecord], runs: &[OracleRun]) -> String {
    let blocks = traces.iter().map(|trace| {
        let runs: Vec<_> = runs
            .iter()
            .filter(|run| run.setting.trace == trace.path)
            .collect();
        let head = runs.first().map_or_else(String::new, |run| head(run));
        trace_line(trace) + &head + "\n" + &brackets(&runs)
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn head(run: &OracleRun) -> String {
    let ceiling = &run.bracket.ceiling;
    let mut text = format!(
        "prefill of {} on {}, cost model {}\nunlimited cache: {} tokens, {:.2} s; inverted intervals: {}\n",
        run.setting.model,
        run.setting.gpu,
        run.setting.cost,
        grouped(ceiling.hit_tokens),
        ceiling.prefill_seconds_recovered,
        grouped(run.bracket.inversions),
    );
    if run.setting.warmup_requests > 0 {
        text += &format!(
            "the first {} requests only warm the cache\n",
            run.setting.warmup_requests
        );
    }
    text
}

fn brackets(runs: &[&OracleRun]) -> String {
    let mut header = vec![
        "capacity",
        "blocks",
        "LRU tokens",
        "oracle tokens",
        "",
        "LRU s",
        "feasible s",
        "no more than s",
        "gap",
    ];
    let no_bypass = runs.iter().any(|run| run.no_bypass.is_some());
    let timed = runs.iter().any(|run| run.wall_seconds.is_some());
    header.extend(no_bypass.then_some("no bypass s"));
    header.extend(timed.then_some("took s"));
    let row = |run: &&OracleRun| {
        let bracket = &run.bracket;
        let (tokens, seconds) = (&bracket.tokens, &bracket.seconds);
        let (oracle, exact) = if tokens.exact {
            (grouped(tokens.upper), "exact")
        } else {
            (
                format!("{}-{}", grouped(tokens.lower), grouped(tokens.upper)),
                "",
            )
        };
        let mut row = vec![
            bytes(run.setting.capacity_bytes),
            grouped(bracket.capacity_blocks),
            grouped(bracket.lru.hit_tokens),
            oracle,
            exact.to_owned(),
            format!("{:.2}", bracket.lru.prefill_seconds_recovered),
            format!("{:.2}", seconds.lower),
            format!("{:.2}", seconds.upper),
            percent(Some(seconds.gap)),
        ];
        let seconds = |found: f64| format!("{found:.2}");
        row.extend(
            run.no_bypass
                .map(|found| seconds(found.prefill_seconds_recovered)),
        );
        row.extend(run.wall_seconds.map(seconds));
        row
    };
    plain(&header, runs.iter().map(row).collect(), 0)
}

/// One block a trace: what it holds, then a row a capacity.
pub fn curve_table(traces: &[TraceRecord], points: &[CurvePoint]) -> String {
    let blocks = traces.iter().map(|trace| {
        let points = points.iter().filter(|point| point.trace == trace.path);
        let rate = |tokens: u64| {
            let share = tokens as f64 / trace.prompt_tokens as f64;
            percent((trace.prompt_tokens > 0).then_some(share))
        };
        let row = |point: &CurvePoint| {
            vec![
                grouped(point.capacity_blocks),
                rate(point.lru_hit_tokens),
                rate(point.second_occurrence_lru_hit_tokens),
                rate(point.belady_hit_tokens),
                if point.belady_exact {
                    "exact"
                } else {
                    "at most"
                }
                .to_owned(),
            ]
        };
        let header = ["blocks", "LRU", "second-occurrence LRU", "Belady", ""];
        trace_line(trace) + "tokens hit\n\n" + &plain(&header, points.map(row).collect(), 0)
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// One block a policy and capacity: what it loses, and its evictions by depth, age, kind and session state.
pub fn regret_table(runs: &[RegretRun]) -> String {
    let blocks = runs
        .iter()
        .map(|run| regret_head(run) + "\n" + &evictions(&run.regret));
    blocks.collect::<Vec<_>>().join("\n")
}

fn regret_head(run: &RegretRun) -> String {
    let regret = &run.regret;
    let loss = |what, loss: &oracle::Loss| {
        format!(
            "{what}: {} blocks, {:.2} s\n",
            grouped(loss.blocks),
            loss.seconds
        )
    };
    format!(
        "{}: {} + {} at {} blocks: {:.2} s recovered where a schedule recovers {:.2} s\n",
        run.setting.trace,
        run.policy,
        run.admission,
        grouped(run.capacity_blocks),
        regret.policy.prefill_seconds_recovered,
        regret.oracle.prefill_seconds_recovered,
    ) + &loss("lost by evicting too early", &regret.premature)
        + &loss("lost by not admitting", &regret.refused)
        + &loss("won against the schedule", &regret.lucky)
}

fn evictions(regret: &Regret) -> String {
    let cells = |dimension: &str, bucket: &str, evictions: &Evictions| {
        vec![
            dimension.to_owned(),
            bucket.to_owned(),
            grouped(evictions.premature_blocks),
            format!("{:.2}", evictions.premature_seconds),
            grouped(evictions.unaffordable_blocks),
            grouped(evictions.dead_weight_blocks),
            grouped(evictions.dead_weight_block_requests),
        ]
    };
    let mut rows = vec![cells("all", "", &regret.evictions)];
    let by = regret.by.iter();
    rows.extend(by.map(|row| cells(row.dimension, &row.bucket, &row.evictions)));
    let header = [
        "evicted blocks by",
        "",
        "premature",
        "lost s",
        "unaffordable",
        "dead weight",
        "block-requests",
    ];
    plain(&header, rows, 2)
}

/// One bucket of one comparison.
#[derive(Serialize)]
struct RegretRow<'a> {
    trace: &'a str,
    cost: &'a str,
    capacity_blocks: u64,
    policy: &'a str,
    admission: &'a str,
    dimension: &'a str,
    bucket: &'a str,
    #[serde(flatten)]
    evictions: Evictions,
}

/// The evictions as CSV, a line a bucket; the bucket of all evictions is called `all`.
pub fn regret_csv(runs: &[RegretRun]) -> String {
    let mut rows = Vec::new();
    for run in runs {
        let row = |dimension, bucket, evictions| RegretRow {
            trace: &run.setting.trace,
            cost: &run.setting.cost,
            capacity_blocks: run.capacity_blocks,
            policy: &run.policy,
            admission: &run.admission,
            dimension,
            bucket,
            evictions,
        };
        rows.push(row("all", "all", run.regret.evictions));
        let by = run.regret.by.iter();
        rows.extend(by.map(|part| row(part.dimension, part.bucket.as_str(), part.evictions)));
    }
    csv(&rows)
}
