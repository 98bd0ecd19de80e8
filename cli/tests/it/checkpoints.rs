//! Models that resume only from saved states, through the real binaries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::{ORACLE, REPLAY, ROOFLINE, TRACE_GEN, example, failure, json, run, stdout};

/// Token hit rates by capacity and policy.
fn hit_rates(folder: &Path, args: &[&str]) -> BTreeMap<(u64, String), f64> {
    let format = ["--format", "json"];
    let report = json(&run(REPLAY, folder, &[args, &format].concat()));
    let runs = report["runs"].as_array().unwrap();
    let rate = |run: &serde_json::Value| {
        let key = (
            run["capacity_bytes"].as_u64().unwrap(),
            run["policy"].as_str().unwrap().to_owned(),
        );
        (key, run["token_hit_rate"].as_f64().unwrap())
    };
    runs.iter().map(rate).collect()
}

fn example_path() -> String {
    example().to_str().unwrap().to_owned()
}

const PAPER: &str = "marconi,sglang+,vllm+";

/// Sessions of mini-SWE-agent, blocks of 32 tokens.
fn swe_agent_sessions(folder: &Path) -> bool {
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let sessions = shared.join("data/lmcache-agent-trace/miniswe");
    if !sessions.exists() {
        println!("skipped: no ../shared");
        return false;
    }
    let sessions = sessions.to_str().unwrap();
    let import = ["import", "lmcache-agent", sessions, "-o", "swe.parquet"];
    stdout(&run(TRACE_GEN, folder, &import));
    true
}

/// Marconi, table and figures of the evaluation: on SWE-agent sessions it hits more than `sglang+` under pressure, and that far
/// more than `vllm+`; where all states fit they are equal.
#[test]
fn policies_rank_as_published_on_swe_agent_sessions() {
    let folder = tempfile::tempdir().unwrap();
    if !swe_agent_sessions(folder.path()) {
        return;
    }
    let trace = ["--trace", "swe.parquet", "--block-tokens", "32"];
    let args = [
        "--model",
        "hybrid-7b",
        "--policy",
        PAPER,
        "--capacity",
        "1GB,2GB,8GB,64GB",
    ];
    let rates = hit_rates(folder.path(), &[&trace[..], &args].concat());
    let of = |gigabytes: u64, policy: &str| rates[&(gigabytes * 1_000_000_000, policy.to_owned())];
    for pressure in [1, 2, 8] {
        assert!(
            of(pressure, "marconi") > of(pressure, "sglang+"),
            "{rates:?}"
        );
        assert!(
            of(pressure, "sglang+") > 2.0 * of(pressure, "vllm+"),
            "{rates:?}"
        );
    }
    assert_eq!(of(64, "marconi"), of(64, "sglang+"));
}

/// Where KV is per token, the three are LRU but for alpha.
#[test]
fn policies_are_nearly_equal_on_pure_attention() {
    let folder = tempfile::tempdir().unwrap();
    if !swe_agent_sessions(folder.path()) {
        return;
    }
    let trace = ["--trace", "swe.parquet", "--block-tokens", "32"];
    let args = [
        "--policy",
        "lru,marconi,sglang+,vllm+",
        "--capacity",
        "10%,25%,50%",
    ];
    let rates = hit_rates(folder.path(), &[&trace[..], &args].concat());
    for ((capacity, policy), rate) in &rates {
        let lru = rates[&(*capacity, "lru".to_owned())];
        assert!(
            (rate - lru).abs() < 0.02,
            "{policy} at {capacity}: {rate} and {lru}"
        );
    }
}

#[test]
fn states_are_counted_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let trace = example_path();
    let args = [
        "--trace",
        &trace,
        "--capacity",
        "5%,25%",
        "--oracle",
        "--format",
        "json",
    ];
    let model = ["--model", "hybrid-7b", "--policy", "every"];
    let report = json(&run(REPLAY, folder.path(), &[&args[..], &model].concat()));
    for run in report["runs"].as_array().unwrap() {
        assert_eq!(run["policy_faults"], 0, "{run}");
        assert_eq!(run["evict_unit"], "node");
        assert!(
            run["saved_states"].as_u64() > run["evicted_states"].as_u64(),
            "{run}"
        );
        let capture = run["capture"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&capture), "{run}");
        assert!(
            run["hit_tokens"].as_u64() <= run["oracle_hit_tokens_upper"].as_u64(),
            "{run}"
        );
    }
    let plain = ["--policy", "lru"];
    let report = json(&run(REPLAY, folder.path(), &[&args[..], &plain].concat()));
    assert!(report["runs"][0]["saved_states"].is_null());
}

/// An eviction policy may bring its admission policy; one that is named comes first.
#[test]
fn a_policy_comes_with_its_partner() {
    let folder = tempfile::tempdir().unwrap();
    let trace = example_path();
    let admissions = |more: &[&str]| -> Vec<String> {
        let args = [
            "--trace",
            &trace,
            "--policy",
            "vllm+,sglang+,lru",
            "--format",
            "json",
        ];
        let report = json(&run(REPLAY, folder.path(), &[&args[..], more].concat()));
        let runs = report["runs"].as_array().unwrap();
        runs.iter()
            .map(|run| run["admission"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(admissions(&[]), ["checkpoint-every", "marconi", "all"]);
    assert_eq!(admissions(&["--admission", "all"]), ["all", "all", "all"]);
}

#[test]
fn what_is_not_for_such_models_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let trace = example_path();
    let refused = |command: &str, args: &[&str]| {
        let input = ["--trace", &trace, "--model", "jamba-v0.1"];
        failure(&run(command, folder.path(), &[args, &input].concat()), 1)
    };
    let message = refused(REPLAY, &["--evict-unit", "leaf"]);
    assert!(
        message.contains("jamba-v0.1 resumes only from saved states"),
        "{message}"
    );
    for args in [
        &["curve"][..],
        &["regret", "--capacity", "5%"],
        &["--no-bypass", "--capacity", "5%"],
    ] {
        let message = refused(ORACLE, args);
        assert!(message.contains("use another --model"), "{message}");
    }
    let models = stdout(&run(ROOFLINE, folder.path(), &["models"]));
    assert!(
        models.contains("gemma-3-12b") && models.contains("26,787,840"),
        "{models}"
    );
}
