//! The tables that `oracle` prints.

use oracle::{CurvePoint, Evictions, Loss, OracleRun, RegretRun};
use replay::{Report, TraceRecord};
use serde::Serialize;

use crate::csv_form::csv;
use crate::numbers::{bytes, grouped, percent};
use crate::page::{Page, Section, trace_lines};
use crate::replay_page::calibrated_by;
use crate::table::{Column, Table};

const BRACKETS: &[Column<OracleRun>] = &[
    Column::numbers("capacity", |run| bytes(run.setting.capacity_bytes)),
    Column::numbers("blocks", |run| grouped(run.bracket.capacity_blocks)),
    Column::numbers("LRU tokens", |run| grouped(run.bracket.lru.hit_tokens)),
    Column::numbers("oracle tokens", |run| {
        let tokens = &run.bracket.tokens;
        match tokens.exact {
            true => grouped(tokens.upper),
            false => format!("{}-{}", grouped(tokens.lower), grouped(tokens.upper)),
        }
    }),
    Column::numbers("", |run| match run.bracket.tokens.exact {
        true => "exact".to_owned(),
        false => String::new(),
    }),
    Column::numbers("LRU s", |run| {
        seconds(run.bracket.lru.prefill_seconds_recovered)
    }),
    Column::numbers("feasible s", |run| seconds(run.bracket.seconds.lower)),
    Column::numbers("no more than s", |run| seconds(run.bracket.seconds.upper)),
    Column::numbers("gap", |run| percent(Some(run.bracket.seconds.gap))),
    Column::numbers("no bypass s", |run: &OracleRun| {
        let found = run.no_bypass.as_ref();
        found.map_or_else(String::new, |found| {
            seconds(found.prefill_seconds_recovered)
        })
    })
    .when(|runs| runs.iter().any(|run| run.no_bypass.is_some())),
    Column::numbers("took s", |run: &OracleRun| {
        run.wall_seconds.map_or_else(String::new, seconds)
    })
    .when(|runs| runs.iter().any(|run| run.wall_seconds.is_some())),
];

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2}")
}

/// One section per scenario: what the trace holds, then one row per capacity.
pub fn brackets_page(report: &Report<OracleRun>) -> Page {
    let mut sections = Vec::new();
    for (index, trace) in report.traces.iter().enumerate() {
        let of_trace = report
            .runs
            .iter()
            .filter(|run| run.setting.trace_index == index);
        let runs: Vec<_> = of_trace.collect();
        let same_price = |a: &&OracleRun, b: &&OracleRun| {
            let price = |run: &OracleRun| {
                let setting = &run.setting;
                (
                    setting.model.clone(),
                    setting.gpu.clone(),
                    setting.cost.clone(),
                )
            };
            price(a) == price(b)
        };
        sections.extend(runs.chunk_by(same_price).map(|runs| Section {
            head: head(trace, runs[0]),
            table: Table::of(BRACKETS, runs),
            notes: Vec::new(),
        }));
    }
    Page(sections)
}

fn head(trace: &TraceRecord, run: &OracleRun) -> Vec<String> {
    let infinite = &run.bracket.ceiling;
    let mut lines = trace_lines(trace);
    lines.push(format!(
        "prefill of {} on {}, cost model {}{}",
        run.setting.model,
        run.setting.gpu,
        run.setting.cost,
        calibrated_by(run.setting.calibration.as_ref()),
    ));
    lines.push(format!(
        "infinite cache: {} tokens, {:.2} s; inverted intervals: {}",
        grouped(infinite.hit_tokens),
        infinite.prefill_seconds_recovered,
        grouped(run.bracket.inversions),
    ));
    if run.setting.warmup_requests > 0 {
        lines.push(format!(
            "the first {} requests only warm the cache",
            run.setting.warmup_requests
        ));
    }
    lines
}

/// A point of a curve, with the tokens that it is a share of.
struct Point {
    prompt_tokens: u64,
    point: CurvePoint,
}

impl Point {
    fn rate(&self, hit_tokens: u64) -> String {
        let share = hit_tokens as f64 / self.prompt_tokens as f64;
        percent((self.prompt_tokens > 0).then_some(share))
    }
}

const CURVE: &[Column<Point>] = &[
    Column::numbers("blocks", |at| grouped(at.point.capacity_blocks)),
    Column::numbers("LRU", |at| at.rate(at.point.lru_hit_tokens)),
    Column::numbers("second-occurrence LRU", |at| {
        at.rate(at.point.second_occurrence_lru_hit_tokens)
    }),
    Column::numbers("Belady", |at| at.rate(at.point.belady_hit_tokens)),
    Column::numbers("", |at| match at.point.belady_exact {
        true => "exact".to_owned(),
        false => "at most".to_owned(),
    }),
];

/// One section per trace: what it holds, then one row per capacity.
pub fn curve_page(report: &Report<CurvePoint>) -> Page {
    let sections = report.traces.iter().enumerate().map(|(index, trace)| {
        let points = report
            .runs
            .iter()
            .filter(|point| point.trace_index == index);
        let points: Vec<_> = points
            .map(|point| Point {
                prompt_tokens: trace.prompt_tokens,
                point: point.clone(),
            })
            .collect();
        let mut head = trace_lines(trace);
        head.push("tokens hit".to_owned());
        Section {
            head,
            table: Table::of(CURVE, &points.iter().collect::<Vec<_>>()),
            notes: Vec::new(),
        }
    });
    Page(sections.collect())
}

/// One bucket of one comparison.
#[derive(Serialize)]
struct Bucket {
    trace: String,
    cost: String,
    capacity_blocks: u64,
    policy: String,
    admission: String,
    dimension: String,
    bucket: String,
    #[serde(flatten)]
    evictions: Evictions,
}

const REGRET: &[Column<Bucket>] = &[
    Column::words("evicted blocks by", |row| row.dimension.clone()),
    Column::words("", |row| match row.dimension.as_str() {
        ALL => String::new(),
        _ => row.bucket.clone(),
    }),
    Column::numbers("premature", |row| grouped(row.evictions.premature_blocks)),
    Column::numbers("lost s", |row| seconds(row.evictions.premature_seconds)),
    Column::numbers("unaffordable", |row| {
        grouped(row.evictions.unaffordable_blocks)
    }),
    Column::numbers("dead weight", |row| {
        grouped(row.evictions.dead_weight_blocks)
    }),
    Column::numbers("block-requests", |row| {
        grouped(row.evictions.dead_weight_block_requests)
    }),
];

/// The bucket of all evictions.
const ALL: &str = "all";

/// One section per policy and capacity: what it loses, and its evictions by depth, age, kind and session state.
pub fn regret_page(report: &Report<RegretRun>) -> Page {
    let section = |run: &RegretRun| {
        let buckets = buckets(run);
        Section {
            head: regret_head(run),
            table: Table::of(REGRET, &buckets.iter().collect::<Vec<_>>()),
            notes: Vec::new(),
        }
    };
    Page(report.runs.iter().map(section).collect())
}

/// The evictions as CSV, one line per bucket; the bucket of all evictions is called `all`.
pub fn regret_csv(report: &Report<RegretRun>) -> String {
    csv(&report.runs.iter().flat_map(buckets).collect::<Vec<_>>())
}

fn regret_head(run: &RegretRun) -> Vec<String> {
    let regret = &run.regret;
    let loss = |what, loss: &Loss| {
        format!(
            "{what}: {} blocks, {:.2} s",
            grouped(loss.blocks),
            loss.seconds
        )
    };
    vec![
        format!(
            "{}: {} + {} at {} blocks",
            run.setting.trace,
            run.policy,
            run.admission,
            grouped(run.capacity_blocks),
        ),
        format!(
            "recovered: {:.2} s, where a schedule recovers {:.2} s",
            regret.policy.prefill_seconds_recovered, regret.oracle.prefill_seconds_recovered,
        ),
        loss("lost by evicting too early", &regret.premature),
        loss("lost by not admitting", &regret.rejected),
        loss("won against the schedule", &regret.lucky),
    ]
}

fn buckets(run: &RegretRun) -> Vec<Bucket> {
    let bucket = |dimension: &str, bucket: &str, evictions| Bucket {
        trace: run.setting.trace.clone(),
        cost: run.setting.cost.clone(),
        capacity_blocks: run.capacity_blocks,
        policy: run.policy.clone(),
        admission: run.admission.clone(),
        dimension: dimension.to_owned(),
        bucket: bucket.to_owned(),
        evictions,
    };
    let by = run.regret.by.iter();
    let by = by.map(|part| bucket(part.dimension, part.bucket.as_str(), part.evictions));
    [bucket(ALL, ALL, run.regret.evictions)]
        .into_iter()
        .chain(by)
        .collect()
}
