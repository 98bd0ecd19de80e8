//! The table that `replay` prints.

use replay::{Report, RunRecord, TraceRecord};

use crate::numbers::{bytes, grouped, percent};
use crate::plain::{plain, trace_line};

/// One block a trace: what was replayed, then a row a run. At most 100 columns wide with names of usual length.
pub fn run_table(report: &Report) -> String {
    let mut text = String::new();
    for trace in &report.traces {
        let runs: Vec<_> = report
            .runs
            .iter()
            .filter(|run| run.trace == trace.path)
            .collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&head(trace, &runs));
        text.push('\n');
        text.push_str(&table(&runs));
        let notes = notes(&runs);
        if !notes.is_empty() {
            text.push_str(&format!("\n{}\n", notes.join("\n")));
        }
    }
    text
}

/// What was replayed, what it costs without a cache, and what an unlimited one recovers: a line each.
pub(crate) fn head(trace: &TraceRecord, runs: &[&RunRecord]) -> String {
    let mut text = trace_line(trace);
    if let Some(run) = runs.first() {
        text.push_str(&format!(
            "prefill of {} on {}, cost model {}",
            run.model, run.gpu, run.cost
        ));
        text.push_str(&format!(
            ": {:.2} s without a cache\n",
            run.prefill_seconds_cold
        ));
        if run.warmup_requests > 0 {
            text.push_str(&format!(
                "the first {} requests only warm the cache\n",
                run.warmup_requests
            ));
        }
        let ceiling = &run.ceiling;
        text.push_str(&format!(
            "unlimited cache: {} of tokens hit, {} of prefill recovered ({:.2} s)\n",
            percent(ceiling.token_hit_rate),
            percent(ceiling.prefill_recovered),
            ceiling.prefill_seconds_recovered,
        ));
    }
    text
}

fn table(runs: &[&RunRecord]) -> String {
    let oracle = runs.iter().any(|run| run.against_oracle.is_some());
    let mut header = vec![
        "policy",
        "admission",
        "capacity",
        "blocks",
        "tokens hit",
        "recovered",
        "TTFT p99 s",
    ];
    // Seconds saved make room for what they are held against.
    if oracle {
        header.extend(["capture", "gap closed"]);
    } else {
        header.push("saved s");
    }
    let mut rows = Vec::new();
    for run in runs {
        let mut row = vec![
            run.policy.clone(),
            run.admission.clone(),
            bytes(run.capacity_bytes),
            grouped(run.capacity_blocks),
            percent(run.token_hit_rate),
            percent(run.prefill_recovered),
            run.ttft_seconds
                .p99
                .map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3}")),
        ];
        if let Some(against) = &run.against_oracle {
            row.extend([percent(against.capture), percent(against.gap_closed)]);
        } else {
            row.push(format!("{:.2}", run.prefill_seconds_recovered));
        }
        rows.push(row);
    }
    plain(&header, rows, 2)
}

/// What a reader of the figures must know besides, a line each.
pub(crate) fn notes(runs: &[&RunRecord]) -> Vec<String> {
    let faulty = runs.iter().filter(|run| run.policy_faults > 0);
    let mut notes: Vec<_> = faulty
        .map(|run| {
            let first = run.first_fault.as_deref().unwrap_or("none recorded");
            format!(
                "{} answered wrong {} times; first: {first}",
                run.policy,
                grouped(run.policy_faults)
            )
        })
        .collect();
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
