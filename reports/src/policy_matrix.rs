//! The runs of `replay` as Markdown: policies side by side.

use replay::{Report, RunRecord, TraceRecord};

use crate::numbers::{bytes, percent};
use crate::page::list;
use crate::replay_page::{head, notes, scenarios};
use crate::table::{Align, Table};

/// What the cells of a table hold.
const LEGEND: &str = "Tokens hit / prefill recovered, in per cent. The best that a policy without hints reaches at a \
    capacity is bold.\n";

/// What the cells of the overview hold.
const OVERVIEW: &str = "Prefill recovered over the most that the oracle allows, in per cent, averaged over the capacities. \
    The best without hints is bold.\n";

/// One section per scenario: what was replayed, then a table with one row per policy pair and one column per capacity. Runs
/// scored against the oracle bring a row of the bound that no policy can exceed; of several scenarios, an overview stands
/// before them.
pub fn policy_matrix(report: &Report) -> String {
    let scenarios = scenarios(report);
    let sections = scenarios.iter().map(|(trace, runs)| section(trace, runs));
    overview(&scenarios)
        .into_iter()
        .chain(sections)
        .collect::<Vec<_>>()
        .join("\n")
}

/// One row per policy pair, one column per scenario: the mean capture over the capacities.
fn overview(scenarios: &[(&TraceRecord, Vec<&RunRecord>)]) -> Option<String> {
    let mut runs = scenarios.iter().flat_map(|(_, runs)| runs);
    if scenarios.len() < 2 || runs.any(|run| run.against_oracle.is_none()) {
        return None;
    }
    let runs: Vec<_> = scenarios
        .iter()
        .flat_map(|(_, runs)| runs.iter().copied())
        .collect();
    let pairs = firsts(&runs, pair);
    let captures: Vec<Vec<_>> = scenarios
        .iter()
        .map(|(_, runs)| pairs.iter().map(|row| mean_capture(row, runs)).collect())
        .collect();
    let several_prices = firsts(&runs, |run| (&run.model, &run.gpu, &run.cost)).len() > 1;
    let name = |(trace, runs): &(&TraceRecord, Vec<&RunRecord>)| match runs.first() {
        Some(run) if several_prices => format!("{}, {}", trace.path, run.cost),
        _ => trace.path.clone(),
    };
    let mut table = matrix(scenarios.iter().map(name));
    for (index, row) in pairs.iter().enumerate() {
        let cells = captures.iter().map(|column| {
            let rivals = pairs
                .iter()
                .zip(column)
                .filter(|(rival, _)| is_online(rival));
            figure(
                row,
                column[index],
                rivals.filter_map(|(_, capture)| *capture),
            )
        });
        table.push(names(row).into_iter().chain(cells).collect());
    }
    Some(format!("### Overview\n\n{OVERVIEW}\n{}", table.markdown()))
}

/// A table of policy pairs, with columns of figures.
fn matrix(columns: impl Iterator<Item = String>) -> Table {
    let words = ["policy", "admission"].map(|name| (name.to_owned(), Align::Left));
    let figures = columns.map(|name| (name, Align::Right));
    Table::new(words.into_iter().chain(figures))
}

fn mean_capture(row: &RunRecord, runs: &[&RunRecord]) -> Option<f64> {
    let of_row = runs.iter().filter(|run| pair(run) == pair(row));
    let captures: Vec<_> = of_row
        .filter_map(|run| run.against_oracle.as_ref()?.capture)
        .collect();
    let mean = captures.iter().sum::<f64>() / captures.len() as f64;
    (!captures.is_empty()).then_some(mean)
}

fn section(trace: &TraceRecord, runs: &[&RunRecord]) -> String {
    let path = &trace.path;
    let mut head = head(trace, runs);
    if let Some(rest) = head[0].strip_prefix(&format!("{path}: ")) {
        head[0] = rest.to_owned();
    }
    let title = path.replace('|', "\\|");
    let mut text = format!("### {title}\n\n{}{LEGEND}\n", list(&head));
    text.push_str(&table(trace, runs).markdown());
    let notes = notes(runs);
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(list(&notes).trim_end_matches('\n'));
        text.push('\n');
    }
    text
}

fn table(trace: &TraceRecord, runs: &[&RunRecord]) -> Table {
    let columns = firsts(runs, |run| run.capacity_bytes);
    let mut table = matrix(columns.iter().map(|column| capacity(trace, column)));
    for row in firsts(runs, pair) {
        let cells = columns.iter().map(|column| {
            let mut of_column = runs
                .iter()
                .filter(|run| run.capacity_bytes == column.capacity_bytes);
            let run = of_column.find(|run| pair(run) == pair(row));
            run.map_or_else(String::new, |run| cell(run, runs))
        });
        table.push(names(row).into_iter().chain(cells).collect());
    }
    limits(&columns).into_iter().for_each(|row| table.push(row));
    table
}

fn pair(run: &RunRecord) -> (&str, &str) {
    (&run.policy, &run.admission)
}

/// The first two cells of a row.
fn names(run: &RunRecord) -> [String; 2] {
    let hints = if is_online(run) { "" } else { " (hints)" };
    [
        format!("`{}`{hints}", run.policy),
        format!("`{}`", run.admission),
    ]
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

/// The run's two figures.
fn cell(run: &RunRecord, runs: &[&RunRecord]) -> String {
    let rivals = || {
        let rivals = runs.iter().filter(|rival| is_online(rival));
        rivals.filter(|rival| rival.capacity_bytes == run.capacity_bytes)
    };
    let hits = rivals().filter_map(|rival| rival.token_hit_rate);
    let recovered = rivals().filter_map(|rival| rival.prefill_recovered);
    format!(
        "{} / {}",
        figure(run, run.token_hit_rate, hits),
        figure(run, run.prefill_recovered, recovered)
    )
}

/// A figure of a run; bold where it is an online one and reads the same as the best of the `rivals`.
fn figure(run: &RunRecord, share: Option<f64>, rivals: impl Iterator<Item = f64>) -> String {
    let best = rivals.max_by(f64::total_cmp);
    let text = number(share);
    let is_something = best.is_some_and(|best| best > 0.0);
    if is_online(run) && is_something && text == number(best) {
        format!("**{text}**")
    } else {
        text
    }
}

/// Hundredths without the sign, which would stand in every cell.
fn number(share: Option<f64>) -> String {
    percent(share).trim_end_matches('%').to_owned()
}

/// Rows of what no policy can exceed.
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
    let infinite = |run: &RunRecord| {
        let ceiling = &run.ceiling;
        let hit = number(ceiling.token_hit_rate);
        format!("{hit} / {}", number(ceiling.prefill_recovered))
    };
    let mut rows = Vec::new();
    if columns.iter().any(|run| run.against_oracle.is_some()) {
        rows.push(row("*oracle: at most*", &oracle));
    }
    rows.push(row("*infinite cache*", &infinite));
    rows
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use replay::{AgainstOracle, InfiniteCache};

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
        let ceiling = InfiniteCache {
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
            capacity_bytes: capacity_blocks * 1_000_000,
            capacity_blocks,
            prompt_tokens: 10_000,
            token_hit_rate: Some(hit_tokens as f64 / 10_000.0),
            prefill_seconds_cold: 10_000.0,
            prefill_recovered: Some(hit_tokens as f64 / 10_000.0),
            ceiling,
            ..RunRecord::default()
        }
    }

    fn against(capture: f64) -> AgainstOracle {
        AgainstOracle {
            capture: Some(capture),
            gap_closed: None,
            oracle_seconds_upper: 8_500.0,
            oracle_seconds_lower: 8_400.0,
            oracle_hit_tokens_upper: 8_600,
        }
    }

    fn report(runs: Vec<RunRecord>) -> Report {
        Report::new(vec![trace()], runs)
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
            run.against_oracle = Some(against(1.0));
            run
        };
        let report = report(runs.into_iter().map(oracle).collect());
        assert_snapshot!(policy_matrix(&report), @r"
        ### a.parquet

        - 20 requests, 10,000 prompt tokens
        - 700 block touches, 400 distinct blocks of 16 tokens
        - prefill of course-7b on course-h100, cost model course: 10000.00 s without a cache
        - infinite cache: 90.00% of tokens hit, 90.00% of prefill recovered (9000.00 s)

        Tokens hit / prefill recovered, in per cent. The best that a policy without hints reaches at a capacity is bold.

        | policy            | admission |           10% (40 MB) |          25% (100 MB) |
        | ----------------- | --------- | --------------------: | --------------------: |
        | `lru`             | `all`     | **50.00** / **50.00** | **70.00** / **70.00** |
        | `clock`           | `all`     | **50.00** / **50.00** |         68.00 / 68.00 |
        | `parrot` (hints)  | `all`     |         60.00 / 60.00 |         80.00 / 80.00 |
        | *oracle: at most* |           |         86.00 / 85.00 |         86.00 / 85.00 |
        | *infinite cache*  |           |         90.00 / 90.00 |         90.00 / 90.00 |

        - parrot reads declared hints, and this trace has none: it decides as it does without
        ");
    }

    #[test]
    fn an_overview_of_several_traces() {
        let of = |trace_index, policy, captures: [f64; 2]| {
            captures.map(|capture| RunRecord {
                trace_index,
                against_oracle: Some(against(capture)),
                ..run(policy, 40, 5_000)
            })
        };
        let runs = [
            of(0, "lru", [0.5, 0.7]),
            of(0, "fifo", [0.6, 0.4]),
            of(1, "lru", [0.8, 0.8]),
            of(1, "fifo", [0.8, 1.0]),
        ];
        let mut report = report(runs.concat());
        report.traces.push(TraceRecord {
            path: "b.parquet".to_owned(),
            ..trace()
        });
        assert_snapshot!(overview(&scenarios(&report)).unwrap(), @r"
        ### Overview

        Prefill recovered over the most that the oracle allows, in per cent, averaged over the capacities. The best without hints is bold.

        | policy | admission | a.parquet | b.parquet |
        | ------ | --------- | --------: | --------: |
        | `lru`  | `all`     | **60.00** |     80.00 |
        | `fifo` | `all`     |     50.00 | **90.00** |
        ");
        report.runs[3].against_oracle = None;
        assert_eq!(overview(&scenarios(&report)), None);
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
        let text = policy_matrix(&report);
        let (_, table) = text.split_once("bold.\n\n").unwrap();
        assert_snapshot!(table, @r"
        | policy           | admission |       10% (40 MB) |      0% (0 B) |
        | ---------------- | --------- | ----------------: | ------------: |
        | `lru`            | `all`     | **50.00** / 50.00 |         - / - |
        | `fifo`           | `all`     | 40.00 / **60.00** |               |
        | *infinite cache* |           |     90.00 / 90.00 | 90.00 / 90.00 |
        ");
    }
}
