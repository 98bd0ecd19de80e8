//! `oracle` as its users run it: the real binary on real files.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{self, ORACLE, failure, json, ledger, stdout};

fn oracle(folder: &Path, args: &[&str]) -> Output {
    support::run(ORACLE, folder, args)
}

/// A folder with `agent.parquet`, the example trace, in it.
fn example() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(support::example(), folder.path().join("agent.parquet")).unwrap();
    folder
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap()
}

#[test]
fn the_json_has_the_promised_names_and_the_bounds_hold() {
    let folder = example();
    let capacities = "0,1%,5%,20%,100%";
    let args = [
        "--trace",
        "agent.parquet",
        "--capacity",
        capacities,
        "--format",
        "json",
        "--no-bypass",
    ];
    let report = json(&oracle(folder.path(), &args));
    assert_eq!(report["schema"], "2");
    assert_eq!(report["traces"][0]["path"], "agent.parquet");
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 5);
    for run in runs {
        assert_eq!(run["trace"], "agent.parquet");
        assert!(run["tokens"]["exact"].is_boolean() && run["inversions"].is_u64());
        assert!(
            run.get("wall_seconds").is_none(),
            "no clock unless asked for"
        );
        let ceiling = number(run, "/ceiling/hit_tokens");
        let tokens =
            ["/lru/hit_tokens", "/tokens/lower", "/tokens/upper"].map(|at| number(run, at));
        assert!(tokens.is_sorted() && tokens[2] <= ceiling, "{run}");
        assert!(number(run, "/no_bypass/hit_tokens") <= tokens[2], "{run}");
        let seconds = [
            "/lru/prefill_seconds_recovered",
            "/seconds/lower",
            "/seconds/upper",
        ];
        let seconds = seconds.map(|at| number(run, at));
        assert!(
            seconds.is_sorted_by(|low, high| *low <= high * (1.0 + 1e-9)),
            "{run}"
        );
        assert!(
            (0.0..0.1).contains(&number(run, "/seconds/gap").abs()),
            "{run}"
        );
    }
    assert_eq!(runs[0]["seconds"]["upper"], 0.0);
    let all = &runs[4];
    assert_eq!(all["tokens"]["upper"], all["ceiling"]["hit_tokens"]);
}

#[test]
fn threads_do_not_change_a_byte() {
    let folder = example();
    let run = |threads| {
        let capacities = "1%,3%,10%,30%";
        let args = [
            "--trace",
            "agent.parquet",
            "--capacity",
            capacities,
            "--threads",
            threads,
            "--format",
            "csv",
        ];
        stdout(&oracle(folder.path(), &args))
    };
    let one = run("1");
    assert_eq!(one.lines().count(), 5);
    assert!(
        one.lines().next().unwrap().contains("seconds.upper"),
        "{one}"
    );
    assert_eq!(one, run("4"));
}

#[test]
fn tables_are_readable_at_100_columns() {
    let folder = example();
    for args in [
        vec!["--trace", "agent.parquet", "--capacity", "1%,10%"],
        vec!["curve", "--trace", "agent.parquet"],
        vec![
            "regret",
            "--trace",
            "agent.parquet",
            "--capacity",
            "5%",
            "--policy",
            "lru,fifo",
        ],
    ] {
        let text = stdout(&oracle(folder.path(), &args));
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(text.lines().count() > 4, "{text}");
    }
}

#[test]
fn the_ledger_recovers_all_there_is() {
    let folder = ledger();
    let args = ["--trace", "ledger.parquet", "--format", "json"];
    let report = json(&oracle(folder.path(), &args));
    let run = &report["runs"][0];
    assert_eq!(run["tokens"]["upper"], 90_624);
    assert_eq!(run["tokens"]["exact"], true);
    assert!(
        (number(run, "/seconds/upper") - 3.0052).abs() < 1e-4,
        "{run}"
    );
    assert!(number(run, "/seconds/gap") < 1e-9, "{run}");
}

#[test]
fn the_curve_and_the_brackets_agree() {
    let folder = example();
    let capacities = "2%,7%,40%";
    let args = |command: &[&'static str]| {
        let rest = [
            "--trace",
            "agent.parquet",
            "--capacity",
            capacities,
            "--format",
            "json",
        ];
        [command, &rest]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |command| {
        let args = args(command);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        json(&oracle(folder.path(), &args))
    };
    let (curve, brackets) = (run(&["curve"]), run(&[]));
    for at in 0..3 {
        let (point, run) = (&curve["runs"][at], &brackets["runs"][at]);
        assert_eq!(point["capacity_blocks"], run["capacity_blocks"]);
        assert_eq!(point["lru_hit_tokens"], run["lru"]["hit_tokens"]);
        assert_eq!(point["belady_hit_tokens"], run["tokens"]["upper"]);
    }
}

#[test]
fn regret_explains_the_whole_difference() {
    let folder = example();
    let args = [
        "regret",
        "--trace",
        "agent.parquet",
        "--capacity",
        "5%",
        "--policy",
        "lru,fifo",
        "--format",
        "json",
    ];
    let report = json(&oracle(folder.path(), &args));
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let at = |path: &str| number(run, &format!("/regret{path}"));
        let short =
            at("/oracle/prefill_seconds_recovered") - at("/policy/prefill_seconds_recovered");
        let explained = at("/premature/seconds") + at("/rejected/seconds") - at("/lucky/seconds");
        assert!(
            short > 0.0 && (short - explained).abs() < 1e-9 * short.max(1.0),
            "{run}"
        );
        assert!(!run["regret"]["by"].as_array().unwrap().is_empty());
    }
}

#[test]
fn wrong_input_is_named_and_leaves_no_file() {
    let folder = ledger();
    let at = folder.path();
    let trace = ["--trace", "ledger.parquet"];
    let with = |more: &[&str]| oracle(at, &[&trace[..], more].concat());
    assert!(failure(&with(&["--gap", "200%"]), 2).contains("no gap"));
    assert!(failure(&with(&["--capacity", "5"]), 2).contains("no capacity"));
    assert!(failure(&with(&["--cost", "corse"]), 1).contains("course"));
    let nowhere = with(&["--out", "no/such/folder/out.json"]);
    assert!(failure(&nowhere, 1).contains("no/such/folder/out.json"));
    fs::write(at.join("broken.parquet"), b"PAR1 and no more").unwrap();
    let broken = oracle(at, &["--trace", "broken.parquet", "--out", "out.json"]);
    assert!(failure(&broken, 1).contains("broken.parquet"));
    let policy = oracle(
        at,
        &["regret", "--trace", "ledger.parquet", "--policy", "lruu"],
    );
    assert!(failure(&policy, 1).contains("did you mean `lru`"));
    assert!(!at.join("out.json").exists());
}

#[test]
fn a_certificate_is_checked_and_a_tampered_one_is_refused() {
    let folder = example();
    let at = folder.path();
    let trace = ["--trace", "agent.parquet"];
    let certify = [
        "certify",
        "--capacity",
        "5%",
        "--steps",
        "200",
        "--out",
        "bound.json",
    ];
    stdout(&oracle(at, &[&certify[..], &trace].concat()));
    let verify =
        |more: &[&str]| oracle(at, &[&["verify", "bound.json"], &trace[..], more].concat());
    let line = stdout(&verify(&[]));
    assert!(line.contains("no policy saves more than"), "{line}");

    let other = failure(&verify(&["--model", "llama-3-8b"]), 1);
    assert!(
        other.contains("name that model, GPU and cost model"),
        "{other}"
    );

    let text = fs::read_to_string(at.join("bound.json")).unwrap();
    let mut certificates: Value = serde_json::from_str(&text).unwrap();
    let upper = &mut certificates[0]["certificate"]["seconds_upper"];
    let claimed = upper.as_f64().expect("a certificate claims seconds");
    *upper = (claimed * 0.9).into();
    fs::write(at.join("bound.json"), certificates.to_string()).unwrap();
    let refused = verify(&[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}
