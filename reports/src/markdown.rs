//! The runs of `replay` as Markdown: policies side by side.

use replay::{Report, RunRecord, TraceRecord};

use crate::numbers::{bytes, percent};
use crate::run_table::{head, notes};

/// What the cells of a table hold.
const LEGEND: &str = "Tokens hit / prefill recovered, in per cent. The best that a policy without hints reaches at a \
    capacity is bold.\n";

/// One section a trace: what was replayed, then a table with a row a policy pair and a column a capacity. Runs held against
/// the oracle bring a row of what it certifies that no policy can pass.
pub fn run_markdown(report: &Report) -> String {
    let sections = report.traces.iter().map(|trace| {
        let of_trace = report.runs.iter().filter(|run| run.trace == trace.path);
        section(trace, &of_trace.collect::<Vec<_>>())
    });
    sections.collect::<Vec<_>>().join("\n")
}

fn section(trace: &TraceRecord, runs: &[&RunRecord]) -> String {
    let path = &trace.path;
    let head = head(trace, runs);
    let head = head.strip_prefix(&format!("{path}: ")).unwrap_or(&head);
    let mut text = format!("### {path}\n\n{}\n{LEGEND}\n", list(head.lines()));
    text.push_str(&table(trace, runs));
    let notes = notes(runs);
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(&list(notes.iter().map(String::as_str)));
    }
    text
}

fn list<'a>(items: impl Iterator<Item = &'a str>) -> String {
    items.map(|item| format!("- {item}\n")).collect()
}

fn table(trace: &TraceRecord, runs: &[&RunRecord]) -> String {
    let columns = firsts(runs, |run| run.capacity_bytes);
    let mut header = vec!["policy".to_owned(), "admission".to_owned()];
    header.extend(columns.iter().map(|column| capacity(trace, column)));
    let mut rows = vec![header];
    for pair in firsts(runs, |run| (&run.policy, &run.admission)) {
        let cells = columns.iter().map(|column| {
            let of_row = |run: &&&RunRecord| {
                (&run.policy, &run.admission) == (&pair.policy, &pair.admission)
                    && run.capacity_bytes == column.capacity_bytes
            };
            let run = runs.iter().find(of_row);
            run.map_or_else(String::new, |run| cell(run, runs))
        });
        let hints = if is_online(pair) { "" } else { " (hints)" };
        let mut row = vec![
            format!("`{}`{hints}", pair.policy),
            format!("`{}`", pair.admission),
        ];
        row.extend(cells);
        rows.push(row);
    }
    rows.extend(limits(&columns));
    lines(&rows)
}

/// The first run of each key, in the order of the runs.
fn firsts<'a, K: PartialEq>(
    runs: &[&'a RunRecord],
    key: impl Fn(&'a RunRecord) -> K,
) -> Vec<&'a RunRecord> {
    let mut found: Vec<&RunRecord> = Vec::new();
    for run in runs {
        if found.iter().all(|earlier| key(earlier) != key(run)) {
            found.push(run);
        }
    }
    found
}

fn capacity(trace: &TraceRecord, run: &RunRecord) -> String {
    let memory = bytes(run.capacity_bytes);
    if trace.distinct_blocks == 0 {
        return memory;
    }
    let share = 100.0 * run.capacity_blocks as f64 / f64::from(trace.distinct_blocks);
    let share = format!("{share:.2}");
    let share = share.trim_end_matches('0').trim_end_matches('.');
    format!("{share}% ({memory})")
}

fn is_online(run: &RunRecord) -> bool {
    run.track == "online"
}

/// The run's two figures; each is bold where it reads the same as the best online one at that capacity.
fn cell(run: &RunRecord, runs: &[&RunRecord]) -> String {
    let figure = |of: fn(&RunRecord) -> Option<f64>| {
        let rivals = runs
            .iter()
            .filter(|rival| is_online(rival) && rival.capacity_bytes == run.capacity_bytes);
        let best = rivals.filter_map(|rival| of(rival)).max_by(f64::total_cmp);
        let text = number(of(run));
        if is_online(run) && best.is_some() && text == number(best) {
            format!("**{text}**")
        } else {
            text
        }
    };
    let hit = figure(|run| run.token_hit_rate);
    let recovered = figure(|run| run.prefill_recovered);
    format!("{hit} / {recovered}")
}

/// Hundredths without the sign, which would stand in every cell.
fn number(share: Option<f64>) -> String {
    percent(share).trim_end_matches('%').to_owned()
}

/// Rows of what no policy can pass.
fn limits(columns: &[&RunRecord]) -> Vec<Vec<String>> {
    let row = |name: &str, cell: &dyn Fn(&RunRecord) -> String| {
        let mut row = vec![name.to_owned(), String::new()];
        row.extend(columns.iter().map(|run| cell(run)));
        row
    };
    let share = |part: f64, whole: f64| number((whole != 0.0).then(|| part / whole));
    let oracle = |run: &RunRecord| {
        let cell = run.against_oracle.as_ref().map(|against| {
            let hit = share(
                against.oracle_hit_tokens_upper as f64,
                run.prompt_tokens as f64,
            );
            let recovered = share(against.oracle_seconds_upper, run.prefill_seconds_cold);
            format!("{hit} / {recovered}")
        });
        cell.unwrap_or_default()
    };
    let unlimited = |run: &RunRecord| {
        let ceiling = &run.ceiling;
        let hit = number(ceiling.token_hit_rate);
        format!("{hit} / {}", number(ceiling.prefill_recovered))
    };
    let mut rows = Vec::new();
    if columns.iter().any(|run| run.against_oracle.is_some()) {
        rows.push(row("*oracle: at most*", &oracle));
    }
    rows.push(row("*unlimited cache*", &unlimited));
    rows
}

/// The rows, the first of them the header; the first two columns to the left, figures to the right.
fn lines(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<_> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String]| {
        let mut text = String::from("|");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(&match column {
                0 | 1 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
        }
        text + "\n"
    };
    let rule: Vec<_> = widths
        .iter()
        .enumerate()
        .map(|(column, width)| match column {
            0 | 1 => "-".repeat(*width),
            _ => "-".repeat(width - 1) + ":",
        })
        .collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&line(row));
        if index == 0 {
            text.push_str(&line(&rule));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use replay::{AgainstOracle, Ceiling, SCHEMA, Ttft};

    use super::*;

    fn trace() -> TraceRecord {
        TraceRecord {
            path: "a.parquet".to_owned(),
            xxh3: String::new(),
            content: "blocks",
            requests: 20,
            prompt_tokens: 10_000,
            blocks: 700,
            distinct_blocks: 400,
            block_tokens: 16,
        }
    }

    /// A run that hits so many of 10,000 tokens and recovers as many of 10,000 seconds.
    fn run(policy: &str, capacity_blocks: u64, hit_tokens: u64) -> RunRecord {
        let ceiling = Ceiling {
            hit_tokens: 9_000,
            token_hit_rate: Some(0.9),
            prefill_seconds_recovered: 9_000.0,
            prefill_recovered: Some(0.9),
        };
        RunRecord {
            trace: "a.parquet".to_owned(),
            policy: policy.to_owned(),
            admission: "all".to_owned(),
            cost: "course".to_owned(),
            model: "course-7b".to_owned(),
            gpu: "course-h100".to_owned(),
            track: "online",
            hints_missing: false,
            evict_unit: "block",
            seed: 0,
            capacity_bytes: capacity_blocks * 1_000_000,
            capacity_blocks,
            warmup_requests: 0,
            requests: 20,
            prompt_tokens: 10_000,
            prompt_blocks: 600,
            hit_tokens,
            hit_blocks: hit_tokens / 16,
            token_hit_rate: Some(hit_tokens as f64 / 10_000.0),
            block_hit_rate: Some(hit_tokens as f64 / 9_600.0),
            prefill_seconds_cold: 10_000.0,
            prefill_seconds_recovered: hit_tokens as f64,
            prefill_recovered: Some(hit_tokens as f64 / 10_000.0),
            flops_recovered: 0.0,
            ceiling,
            against_oracle: None,
            ttft_seconds: Ttft::default(),
            admitted_blocks: 0,
            refused_blocks: 0,
            evicted_blocks: 0,
            churn: None,
            rewanted_blocks: 0,
            rounding_lost_tokens: None,
            policy_faults: 0,
            first_fault: None,
            timings: None,
        }
    }

    fn report(runs: Vec<RunRecord>) -> Report {
        Report {
            schema: SCHEMA,
            traces: vec![trace()],
            runs,
        }
    }

    #[test]
    fn policies_stand_side_by_side() {
        let hinted = |capacity, hit| RunRecord {
            track: "declared",
            hints_missing: true,
            ..run("parrot", capacity, hit)
        };
        let runs = vec![
            run("lru", 40, 5_000),
            run("clock", 40, 5_000),
            hinted(40, 6_000),
            run("lru", 100, 7_000),
            run("clock", 100, 6_800),
            hinted(100, 8_000),
        ];
        let oracle = |mut run: RunRecord| {
            run.against_oracle = Some(AgainstOracle {
                capture: None,
                gap_closed: None,
                oracle_seconds_upper: 8_500.0,
                oracle_seconds_lower: 8_400.0,
                oracle_hit_tokens_upper: 8_600,
            });
            run
        };
        let report = report(runs.into_iter().map(oracle).collect());
        assert_snapshot!(run_markdown(&report), @r"
        ### a.parquet

        - 20 requests, 10,000 prompt tokens
        - 700 block touches, 400 distinct blocks of 16 tokens
        - prefill of course-7b on course-h100, cost model course: 10000.00 s without a cache
        - unlimited cache: 90.00% of tokens hit, 90.00% of prefill recovered (9000.00 s)

        Tokens hit / prefill recovered, in per cent. The best that a policy without hints reaches at a capacity is bold.

        | policy            | admission |           10% (40 MB) |          25% (100 MB) |
        | ----------------- | --------- | --------------------: | --------------------: |
        | `lru`             | `all`     | **50.00** / **50.00** | **70.00** / **70.00** |
        | `clock`           | `all`     | **50.00** / **50.00** |         68.00 / 68.00 |
        | `parrot` (hints)  | `all`     |         60.00 / 60.00 |         80.00 / 80.00 |
        | *oracle: at most* |           |         86.00 / 85.00 |         86.00 / 85.00 |
        | *unlimited cache* |           |         90.00 / 90.00 |         90.00 / 90.00 |

        - parrot reads declared hints, and this trace has none: it decides as it does without
        ");
    }

    #[test]
    fn figures_differ_and_a_run_may_be_missing() {
        let cheap = RunRecord {
            prefill_recovered: Some(0.6),
            ..run("fifo", 40, 4_000)
        };
        let nothing = RunRecord {
            token_hit_rate: None,
            prefill_recovered: None,
            ..run("lru", 0, 0)
        };
        let report = report(vec![run("lru", 40, 5_000), cheap, nothing]);
        let text = run_markdown(&report);
        let (_, table) = text.split_once("bold.\n\n").unwrap();
        assert_snapshot!(table, @r"
        | policy            | admission |       10% (40 MB) |      0% (0 B) |
        | ----------------- | --------- | ----------------: | ------------: |
        | `lru`             | `all`     | **50.00** / 50.00 |         - / - |
        | `fifo`            | `all`     | 40.00 / **60.00** |               |
        | *unlimited cache* |           |     90.00 / 90.00 | 90.00 / 90.00 |
        ");
    }
}
