//! The table that `replay` prints.

use replay::{Report, RunRecord, TraceRecord};

use crate::numbers::{bytes, grouped, percent};
use crate::page::{Page, Section, trace_lines};
use crate::table::{Column, Table};

/// The columns, in their order. To add one, add a line.
const COLUMNS: &[Column<RunRecord>] = &[
    Column::words("policy", |run| run.policy.clone()),
    Column::words("admission", |run| run.admission.clone()),
    Column::numbers("capacity", |run| bytes(run.capacity_bytes)),
    Column::numbers("blocks", |run| grouped(run.capacity_blocks)),
    Column::numbers("tokens hit", |run| percent(run.token_hit_rate)),
    Column::numbers("recovered", |run| percent(run.prefill_recovered)),
    Column::numbers("TTFT p99 s", |run| {
        let p99 = run.ttft_seconds.p99;
        p99.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3}"))
    }),
    Column::numbers("capture", |run: &RunRecord| {
        percent(run.against_oracle.as_ref().and_then(|run| run.capture))
    })
    .when(with_oracle),
    Column::numbers("gap closed", |run: &RunRecord| {
        percent(run.against_oracle.as_ref().and_then(|run| run.gap_closed))
    })
    .when(with_oracle),
    // Seconds saved make room for what they are held against.
    Column::numbers("saved s", |run: &RunRecord| {
        format!("{:.2}", run.prefill_seconds_recovered)
    })
    .when(|runs| !with_oracle(runs)),
];

fn with_oracle(runs: &[&RunRecord]) -> bool {
    runs.iter().any(|run| run.against_oracle.is_some())
}

/// One section per scenario: what was replayed, then one row per run.
pub fn replay_page(report: &Report) -> Page {
    let sections = scenarios(report).into_iter().map(|(trace, runs)| Section {
        head: head(trace, &runs),
        table: Table::of(COLUMNS, &runs),
        notes: notes(&runs),
    });
    Page(sections.collect())
}

/// The runs of each trace under each pricing, in the order of the report. A trace without runs has an empty list.
pub(crate) fn scenarios(report: &Report) -> Vec<(&TraceRecord, Vec<&RunRecord>)> {
    let mut scenarios = Vec::new();
    for (index, trace) in report.traces.iter().enumerate() {
        let runs: Vec<_> = report
            .runs
            .iter()
            .filter(|run| run.trace_index == index)
            .collect();
        let same_price = |a: &&RunRecord, b: &&RunRecord| {
            (&a.model, &a.gpu, &a.cost) == (&b.model, &b.gpu, &b.cost)
        };
        let by_price = runs.chunk_by(same_price);
        scenarios.extend(by_price.map(|runs| (trace, runs.to_vec())));
        if runs.is_empty() {
            scenarios.push((trace, runs));
        }
    }
    scenarios
}

/// The calibration behind a cost model's name.
pub(crate) fn calibrated_by(calibration: Option<&String>) -> String {
    calibration.map_or_else(String::new, |name| format!(" (efficiencies of {name})"))
}

/// What was replayed, what it costs without a cache, and what an infinite one recovers.
pub(crate) fn head(trace: &TraceRecord, runs: &[&RunRecord]) -> Vec<String> {
    let mut lines = trace_lines(trace);
    let Some(run) = runs.first() else {
        return lines;
    };
    lines.push(format!(
        "prefill of {} on {}, cost model {}{}: {:.2} s without a cache",
        run.model,
        run.gpu,
        run.cost,
        calibrated_by(run.calibration.as_ref()),
        run.prefill_seconds_cold
    ));
    if run.warmup_requests > 0 {
        lines.push(format!(
            "the first {} requests only warm the cache",
            run.warmup_requests
        ));
    }
    lines.push(format!(
        "infinite cache: {} of tokens hit, {} of prefill recovered ({:.2} s)",
        percent(run.ceiling.token_hit_rate),
        percent(run.ceiling.prefill_recovered),
        run.ceiling.prefill_seconds_recovered,
    ));
    lines
}

/// What a reader of the figures must know besides.
pub(crate) fn notes(runs: &[&RunRecord]) -> Vec<String> {
    let mut notes: Vec<_> = runs.iter().filter_map(|run| failure(run)).collect();
    notes.extend(runs.iter().filter_map(|run| faults(run)));
    for run in runs.iter().filter(|run| run.hints_missing) {
        let note = format!(
            "{} reads declared hints, and this trace has none: it decides as it does without",
            run.policy
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    if let Some(timings) = runs.iter().find_map(|run| run.timings.as_ref()) {
        let rate = timings.touches_per_second / 1e6;
        notes.push(format!(
            "first run: {:.3} s, {rate:.1} M block touches/s",
            timings.replay_seconds
        ));
    }
    notes
}

fn failure(run: &RunRecord) -> Option<String> {
    let why = run.failure.as_ref()?;
    Some(format!(
        "{} at {} ended early, and its figures are of what was before: {why}",
        run.policy,
        bytes(run.capacity_bytes)
    ))
}

fn faults(run: &RunRecord) -> Option<String> {
    (run.policy_faults > 0).then(|| {
        format!(
            "{} answered wrong {} times; first: {}",
            run.policy,
            grouped(run.policy_faults),
            run.first_fault.as_deref().unwrap_or("none recorded")
        )
    })
}
