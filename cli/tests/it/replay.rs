//! `replay` as its users run it: the real binary on real files.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{self, REPLAY, failure, files_in, json, ledger, stdout};

fn replay(folder: &Path, args: &[&str]) -> Output {
    support::run(REPLAY, folder, args)
}

fn example() -> String {
    support::example().to_str().unwrap().to_owned()
}

/// The README shows what its main command prints.
#[test]
fn the_readme_is_true() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let command = readme
        .lines()
        .find(|line| line.contains("--bin replay -- "))
        .unwrap();
    let args: Vec<_> = command.split(" -- ").nth(1).unwrap().split(' ').collect();
    let shown = readme.split("The first prints:\n\n").nth(1).unwrap();
    let shown: Vec<_> = shown
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("    "))
        .map(|line| line.trim_start_matches("    "))
        .collect();
    let printed = stdout(&replay(&root, &args));
    assert_eq!(printed.trim_end(), shown.join("\n").trim_end());
}

/// The README shows the whole example policy.
#[test]
fn the_readmes_policy_is_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let code = fs::read_to_string(root.join("examples/policy/src/lib.rs")).unwrap();
    let (_, code) = code.split_once("\n\nuse ").unwrap();
    let (code, _) = code.split_once("\n\n#[cfg(test)]").unwrap();
    assert!(readme.contains(&format!("```rust\nuse {code}\n```")));
}

/// The same trace given twice is two traces: each run stands under its own.
#[test]
fn the_same_trace_twice_prints_each_run_once() {
    let folder = ledger();
    let twice = ["--trace", "ledger.parquet", "--trace", "ledger.parquet"];
    let text = stdout(&replay(folder.path(), &twice));
    let rows = text.lines().filter(|line| line.starts_with("lru "));
    assert_eq!(rows.count(), 2, "{text}");
    let costs = ["--trace", "ledger.parquet", "--cost", "course,causal"];
    let text = stdout(&replay(folder.path(), &costs));
    assert!(
        text.contains("cost model course:") && text.contains("cost model causal:"),
        "{text}"
    );
    let rows = text.lines().filter(|line| line.starts_with("lru "));
    assert_eq!(rows.count(), 2, "{text}");
}

#[test]
fn the_first_command_needs_nothing_else() {
    let folder = ledger();
    let text = stdout(&replay(
        folder.path(),
        &["--policy", "lru", "--trace", "ledger.parquet"],
    ));
    assert!(text.contains("20 requests, 97,000 prompt tokens"), "{text}");
    assert!(
        text.contains("93.43%") && text.contains("62.5 GB"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn the_ledger_of_the_course() {
    let folder = ledger();
    let report = json(&replay(
        folder.path(),
        &["--trace", "ledger.parquet", "--format", "json"],
    ));
    let run = &report["runs"][0];
    assert_eq!(run["hit_tokens"], 90_624);
    let near = |field: &str, expected: f64| {
        let seconds = run[field].as_f64().unwrap();
        assert!((seconds - expected).abs() < 5e-5, "{field}: {seconds}");
    };
    near("prefill_seconds_recovered", 3.0052);
    near("prefill_seconds_cold", 3.2065);
}

const TRACE_FIELDS: &str = "path xxh3 requests prompt_tokens blocks distinct_blocks block_tokens";
const RUN_FIELDS: &str = "trace policy admission capacity_bytes capacity_blocks requests prompt_tokens hit_tokens \
    hit_blocks token_hit_rate block_hit_rate prefill_seconds_cold prefill_seconds_recovered prefill_recovered \
    flops_recovered ceiling admitted_blocks rejected_blocks evicted_blocks policy_faults rounding_lost_tokens";

#[test]
fn the_json_keeps_its_names() {
    let folder = ledger();
    let report = json(&replay(
        folder.path(),
        &["--trace", "ledger.parquet", "--format", "json"],
    ));
    let has = |object: &Value, names: &str| {
        let object = object.as_object().unwrap();
        names
            .split(' ')
            .for_each(|name| assert!(object.contains_key(name), "{name} is gone"));
    };
    has(&report, "schema traces runs");
    has(&report["traces"][0], TRACE_FIELDS);
    has(&report["runs"][0], RUN_FIELDS);
    has(
        &report["runs"][0]["ceiling"],
        "token_hit_rate prefill_recovered",
    );
    assert!(
        report["runs"][0].get("timings").is_none(),
        "clock readings only when asked for"
    );
}

#[test]
fn every_combination_is_a_run_in_the_order_asked_for() {
    let folder = ledger();
    let args = [
        "--trace",
        "ledger.parquet",
        "--trace",
        "ledger.parquet",
        "--policy",
        "lru,fifo",
        "--admission",
    ];
    let more = [
        "all, none",
        "--capacity",
        "1GB,10%,4096blocks",
        "--format",
        "csv",
    ];
    let csv = stdout(&replay(folder.path(), &[&args[..], &more].concat()));
    let mut lines = csv.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|field| *field == name).unwrap();
    let (policy, admission, blocks) = (
        column("policy"),
        column("admission"),
        column("capacity_blocks"),
    );
    let runs: Vec<Vec<_>> = lines
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect();
    assert_eq!(runs.len(), 2 * 3 * 2 * 2);
    let first: Vec<_> = runs
        .iter()
        .take(5)
        .map(|run| [&run[policy], &run[admission], &run[blocks]])
        .collect();
    assert_eq!(first[0], ["lru", "all", "119"]);
    assert_eq!(first[1], ["lru", "none", "119"]);
    assert_eq!(first[2], ["fifo", "all", "119"]);
    assert_eq!(first[4], ["lru", "all", "48"]);
}

#[test]
fn the_same_bytes_with_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let trace = example();
    let run = |threads| {
        let args = [
            "--trace",
            &trace,
            "--policy",
            "lru,fifo",
            "--capacity",
            "5%,25%,62.5GB",
            "--format",
            "json",
        ];
        stdout(&replay(
            folder.path(),
            &[&args[..], &["--threads", threads]].concat(),
        ))
    };
    let one = run("1");
    assert_eq!(one, run("4"));
    assert_eq!(one, run("1"));
}

#[test]
fn policies_differ_on_the_example_at_the_default_capacity() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--trace",
        &example(),
        "--policy",
        "lru,fifo",
        "--admission",
        "all,none",
        "--format",
        "json",
    ];
    let report = json(&replay(folder.path(), &args));
    let recovered: Vec<_> = report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["prefill_recovered"].as_f64().unwrap())
        .collect();
    let ceiling = report["runs"][0]["ceiling"]["prefill_recovered"]
        .as_f64()
        .unwrap();
    assert!(
        recovered[0] > recovered[2] + 0.01,
        "LRU and FIFO: {recovered:?}"
    );
    assert!(
        ceiling > recovered[0] + 0.02,
        "nothing is left to win: {recovered:?} of {ceiling}"
    );
    assert_eq!(
        (recovered[1], recovered[3]),
        (0.0, 0.0),
        "nothing is admitted, so nothing is recovered"
    );
}

#[test]
fn the_oracle_is_at_least_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--trace",
        &example(),
        "--policy",
        "every",
        "--capacity",
        "2%,62.5GB",
        "--oracle",
        "--format",
        "json",
    ];
    let report = json(&replay(folder.path(), &args));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2 * policies::EVICTION.len());
    for run in runs {
        let seconds = |field: &str| run[field].as_f64().unwrap();
        assert_eq!(run["policy_faults"], 0, "{run}");
        assert!(
            seconds("prefill_seconds_recovered") <= seconds("oracle_seconds_upper"),
            "{run}"
        );
        assert!(
            run["hit_tokens"].as_u64() <= run["oracle_hit_tokens_upper"].as_u64(),
            "{run}"
        );
        assert!(
            seconds("oracle_seconds_lower") <= seconds("oracle_seconds_upper"),
            "{run}"
        );
        let capture = seconds("prefill_seconds_recovered") / seconds("oracle_seconds_upper");
        assert!((seconds("capture") - capture).abs() < 1e-12, "{run}");
        if run["policy"] == "lru" {
            assert_eq!(seconds("gap_closed"), 0.0, "{run}");
        }
    }
}

#[test]
fn every_policy_in_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let table = |policies: &str, admissions: &str| {
        let trace = example();
        let pairs = ["--policy", policies, "--admission", admissions];
        let args = ["--trace", &trace, "--capacity", "1%,10%", "--oracle"];
        let form = ["--format", "markdown"];
        stdout(&replay(folder.path(), &[&args[..], &pairs, &form].concat()))
    };
    // The first cell of a row.
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
        rows.map(|row| row.split(" |").next().unwrap().trim().to_owned())
            .collect()
    };
    let text = table("every", "all");
    let hints = |entry: &policies::EvictionEntry| match entry.track {
        policies::Track::Online => "",
        policies::Track::Declared => " (hints)",
    };
    let evictions = policies::EVICTION
        .iter()
        .map(|entry| format!("`{}`{}", entry.name, hints(entry)));
    let limits = ["*oracle: at most*", "*infinite cache*"].map(str::to_owned);
    let expected: Vec<_> = evictions.chain(limits).collect();
    assert_eq!(rows(&text)[2..], expected, "{text}");
    assert!(text.contains("**"), "nothing is the best: {text}");
    let text = table("lru(),fifo", "every");
    assert_eq!(
        rows(&text).len(),
        2 + 2 * policies::ADMISSION.len() + 2,
        "{text}"
    );
}

/// On the command line this word stands for all policies.
#[test]
fn no_policy_is_called_every() {
    assert!(policies::eviction("every").is_err());
    assert!(policies::admission("every").is_err());
}

#[test]
fn a_policy_for_hints_says_when_there_are_none() {
    let folder = ledger();
    let text = stdout(&replay(
        folder.path(),
        &["--trace", "ledger.parquet", "--policy", "lru,parrot"],
    ));
    assert!(
        text.contains("parrot reads declared hints, and this trace has none"),
        "{text}"
    );
    assert!(!text.contains("lru reads declared hints"), "{text}");
}

#[test]
fn a_capacity_of_nothing_or_less_than_a_block_hits_nothing() {
    let folder = ledger();
    let args = [
        "--trace",
        "ledger.parquet",
        "--capacity",
        "0,1MB,0%",
        "--format",
        "json",
    ];
    let report = json(&replay(folder.path(), &args));
    for run in report["runs"].as_array().unwrap() {
        assert_eq!(
            (&run["hit_tokens"], &run["capacity_blocks"]),
            (&0.into(), &0.into())
        );
        assert_eq!(run["policy_faults"], 0);
    }
}

#[test]
fn warmup_counts_for_state_but_not_for_figures() {
    let folder = ledger();
    let warmed = |warmup| {
        let args = [
            "--trace",
            "ledger.parquet",
            "--format",
            "json",
            "--warmup",
            warmup,
        ];
        replay(folder.path(), &args)
    };
    let run = |warmup| json(&warmed(warmup))["runs"][0].clone();
    let half = run("50%");
    assert_eq!(half, run("10"));
    assert_eq!(half, run("0.5"));
    assert_eq!(
        (&half["requests"], &half["warmup_requests"]),
        (&10.into(), &10.into())
    );
    // Step 11 has 5,000 tokens, and finds what step 10 left.
    assert!(half["token_hit_rate"].as_f64().unwrap() > 0.94);
    let message = failure(&warmed("100%"), 1);
    assert!(
        message.contains("leaves none of the 20 requests"),
        "{message}"
    );
}

#[test]
fn per_request_figures_add_up() {
    let folder = ledger();
    let args = [
        "--trace",
        "ledger.parquet",
        "--per-request",
        "requests.parquet",
        "--out",
        "runs.txt",
    ];
    assert_eq!(stdout(&replay(folder.path(), &args)), "");
    assert_eq!(
        files_in(folder.path()),
        ["ledger.parquet", "requests.parquet", "runs.txt"]
    );
    assert!(
        fs::read(folder.path().join("requests.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    let two = [&args[..4], &["--policy", "lru,fifo"]].concat();
    assert!(failure(&replay(folder.path(), &two), 1).contains("--per-request is for a single run"));
}

#[test]
fn an_empty_trace_is_legal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.parquet");
    let meta = trace::Meta::new(trace::Content::Blocks { block_tokens: 16 });
    trace::TraceWriter::create(&path, &meta)
        .unwrap()
        .finish()
        .unwrap();
    let report = json(&replay(
        folder.path(),
        &["--trace", "empty.parquet", "--format", "json", "--timings"],
    ));
    let run = &report["runs"][0];
    assert_eq!(
        (&run["requests"], &run["token_hit_rate"]),
        (&0.into(), &Value::Null)
    );
    stdout(&replay(folder.path(), &["--trace", "empty.parquet"]));
}

#[test]
fn bad_files_are_named_and_nothing_is_written() {
    let folder = ledger();
    let whole = fs::read(folder.path().join("ledger.parquet")).unwrap();
    fs::write(folder.path().join("cut.parquet"), &whole[..whole.len() / 2]).unwrap();
    fs::write(
        folder.path().join("rows.csv"),
        "request_id,arrival_us\n1,0\n",
    )
    .unwrap();
    fs::write(folder.path().join("nothing.parquet"), "").unwrap();
    let before = files_in(folder.path());
    for name in [
        "cut.parquet",
        "rows.csv",
        "nothing.parquet",
        "absent.parquet",
    ] {
        let args = [
            "--trace",
            name,
            "--out",
            "out.json",
            "--per-request",
            "requests.parquet",
        ];
        let error = failure(&replay(folder.path(), &args), 1);
        assert!(
            error.starts_with("error: ") && error.contains(name),
            "{error}"
        );
        assert_eq!(files_in(folder.path()), before);
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let folder = ledger();
    let error = |flag, value| {
        failure(
            &replay(folder.path(), &["--trace", "ledger.parquet", flag, value]),
            1,
        )
    };
    let message = error("--policy", "lruu");
    assert!(
        message.contains("there is no eviction policy `lruu`; did you mean `lru`?"),
        "{message}"
    );
    assert!(error("--admission", "some").contains("valid ones: all, none"));
    assert!(error("--policy", "lru(size=1)").contains("there is no parameter `size`"));
    assert!(error("--policy", ",").contains("nothing to run"));
    assert!(error("--admission", ",").contains("nothing to run"));
    assert!(error("--model", "gpt").contains("course-7b"));
    assert!(error("--cost", "guess").contains("course-linear"));
}

#[test]
fn wrong_flags_exit_with_2() {
    let folder = ledger();
    for wrong in [
        ["--capacity", "lots"],
        ["--block-tokens", "0"],
        ["--warmup", "2.0"],
        ["--threads", "0"],
    ] {
        let error = failure(
            &replay(
                folder.path(),
                &[&["--trace", "ledger.parquet"], &wrong[..]].concat(),
            ),
            2,
        );
        assert!(error.contains(wrong[0]), "{error}");
    }
    assert!(failure(&replay(folder.path(), &[]), 2).contains("--trace"));
}

#[test]
fn an_unwritable_output_is_found_before_the_work() {
    let folder = ledger();
    for out in ["absent/out.json", "."] {
        let error = failure(
            &replay(folder.path(), &["--trace", "ledger.parquet", "--out", out]),
            1,
        );
        assert!(error.contains(&format!("cannot write {out}")), "{error}");
    }
    assert_eq!(files_in(folder.path()), ["ledger.parquet"]);
}

#[test]
fn block_tokens_of_a_block_trace_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blocks.parquet");
    let meta = trace::Meta::new(trace::Content::Blocks { block_tokens: 64 });
    trace::TraceWriter::create(&path, &meta)
        .unwrap()
        .finish()
        .unwrap();
    let run = |tokens| {
        replay(
            folder.path(),
            &["--trace", "blocks.parquet", "--block-tokens", tokens],
        )
    };
    stdout(&run("64"));
    let error = failure(&run("16"), 1);
    assert!(
        error.contains("blocks.parquet") && error.contains("64"),
        "{error}"
    );
}

#[test]
fn policies_are_listed_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let list = stdout(&replay(folder.path(), &["policies"]));
    for entry in policies::EVICTION {
        assert!(list.contains(entry.summary), "{}", entry.name);
        let text = stdout(&replay(folder.path(), &["policies", entry.name]));
        assert!(
            text.contains(entry.source) && text.contains(entry.avoid_when),
            "{text}"
        );
    }
    for entry in policies::ADMISSION {
        assert!(list.contains(entry.summary), "{}", entry.name);
    }
    assert!(
        failure(&replay(folder.path(), &["policies", "lruu"]), 1).contains("did you mean `lru`?")
    );
}
