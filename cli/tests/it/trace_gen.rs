//! The command `trace-gen`, run as a user runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use trace::{BlockId, LoadOptions, TraceReader, Workload, load};

use crate::support::{self, REPLAY, TRACE_GEN, failure, files_in, stderr, stdout};

fn trace_gen(args: &[&str]) -> Output {
    support::run(TRACE_GEN, Path::new("."), args)
}

/// Runs a command that must succeed; its standard output.
fn run(args: &[&str]) -> String {
    stdout(&trace_gen(args))
}

/// Runs a command that must fail with exit code 1; what it says.
fn fail(args: &[&str]) -> String {
    failure(&trace_gen(args), 1)
}

fn inspect(path: &str) -> serde_json::Value {
    serde_json::from_str(&run(&["inspect", path, "--format", "json"])).unwrap()
}

fn workload(path: &str) -> Workload {
    load(Path::new(path), &LoadOptions::default())
        .unwrap()
        .workload
}

/// A folder for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        files_in(self.0.path())
    }
}

/// A file of the optional test data, which lies beside the repository.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/data")
        .join(name);
    if !path.exists() {
        eprintln!("skipped: no ../shared");
        return None;
    }
    Some(path)
}

#[test]
fn ledger_counts_are_those_of_the_course() {
    let folder = Folder::new();
    let out = folder.path("ledger.parquet");
    run(&["ledger", "-o", &out]);
    let summary = inspect(&out);
    assert_eq!(summary["prompt_tokens"], 97_000);
    assert_eq!(summary["requests"], 20);
    assert_eq!(summary["infinite_cache_hit_tokens"], 90_624);

    // With a token a block: every prompt but its last token, or what the one before left, is served.
    let one = run(&["inspect", &out, "--block-tokens", "1", "--format", "json"]);
    let one: serde_json::Value = serde_json::from_str(&one).unwrap();
    // 7,700 prompt tokens, and 79 of the last output.
    assert_eq!(one["distinct_blocks"], 7_700 + 79);

    // The same without outputs.
    let mut reader = TraceReader::open(Path::new(&out), None).unwrap();
    let unknown = folder.path("unknown.parquet");
    let mut writer = trace::TraceWriter::create(Path::new(&unknown), reader.meta()).unwrap();
    while let Some(mut row) = reader.next_row().unwrap() {
        if let trace::Body::Tokens { output, .. } = &mut row.body {
            *output = None;
        }
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(inspect(&unknown)["infinite_cache_hit_tokens"], 89_184);
}

#[test]
fn mooncake_rows_become_requests() {
    let folder = Folder::new();
    let input = folder.file(
        "in.jsonl",
        r#"{"timestamp": 5, "input_length": 1100, "output_length": 3, "hash_ids": [0, 1, 2]}

{"timestamp": 2.5, "input_length": 100, "output_length": 0, "hash_ids": [9]}
{"timestamp": 2.5, "input_length": 1024, "output_length": 1, "hash_ids": [0, 1], "more": true}
"#,
    );
    let out = folder.path("out.parquet");
    let said = stderr(&trace_gen(&["import", "mooncake", &input, "-o", &out]));
    assert!(said.contains("3 requests"), "{said}");
    assert!(
        said.contains("2 requests end in a partial last block"),
        "{said}"
    );
    assert!(said.contains("changed  1 rows were out of order"), "{said}");
    let workload = workload(&out);
    let facts = workload.requests().iter().map(|request| {
        (
            request.arrival_us,
            request.prompt_tokens,
            workload.path(request).to_vec(),
        )
    });
    let expected = [
        (2_500, 100, vec![]),
        (2_500, 1024, vec![BlockId(0), BlockId(1)]),
        (5_000, 1100, vec![BlockId(0), BlockId(1)]),
    ];
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    assert_eq!(workload.block_tokens(), 512);
}

#[test]
fn rejected_mooncake_rows_are_named_and_nothing_is_written() {
    let good = r#"{"timestamp": 0, "input_length": 513, "output_length": 1, "hash_ids": [0, 1]}"#;
    let cases = [
        (
            r#"{"timestamp": 0, "input_length": 20, "output_length": 1, "hash_ids": [0, 1]}"#,
            "line 2: 2 hash_ids; expected 1",
        ),
        (
            r#"{"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [0]}"#,
            "line 2: timestamp -1 is not a time",
        ),
        (
            r#"{"timestamp": 0, "input_length": -1, "output_length": 1, "hash_ids": []}"#,
            "line 2: invalid value",
        ),
        (
            r#"{"timestamp": 0, "input_length": 4294967296, "output_length": 1, "hash_ids": []}"#,
            "line 2: invalid value",
        ),
        (
            r#"{"timestamp": 0, "output_length": 1, "hash_ids": []}"#,
            "line 2: missing field `input_length`",
        ),
        (
            r#"{"timestamp": 0, "input_len"#,
            "line 2: EOF while parsing",
        ),
        (
            r#"{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": [3, 0]}"#,
            "line 2: block id 0 at position 1 follows block 3",
        ),
    ];
    for (bad, expected) in cases {
        let folder = Folder::new();
        let input = folder.file("in.jsonl", &format!("{good}\n{bad}\n"));
        let said = fail(&[
            "import",
            "mooncake",
            &input,
            "-o",
            &folder.path("out.parquet"),
        ]);
        assert!(
            said.contains("1 row rejected, nothing written") && said.contains(expected),
            "{said}"
        );
        assert_eq!(folder.names(), ["in.jsonl"]);
    }
}

const SESSION: &str = r#"{"id": "a", "block_size": 4, "hash_id_scope": "local", "requests": [
  {"t": 0.0, "type": "s", "in": 9, "out": 0, "hash_ids": [1, 2], "stop": "tool_use"},
  {"t": 3.5, "type": "subagent", "requests": [
    {"t": 0.25, "type": "n", "in": 4, "out": 5, "hash_ids": [7]},
    {"t": 2.0, "type": "n", "in": 8, "out": 5, "hash_ids": [7, 8]}]},
  {"t": 5.0, "type": "n", "in": 13, "out": 2, "hash_ids": [1, 2, 3]}]}"#;

#[test]
fn agent_sessions_become_sessions_with_ids_of_their_own() {
    let folder = Folder::new();
    let one_line = SESSION.replace('\n', " ");
    let other = one_line.replace(r#""id": "a""#, r#""id": "b""#);
    let input = folder.file("in.jsonl", &format!("{one_line}\n{other}\n{one_line}\n"));
    let out = folder.path("out.parquet");
    run(&["import", "agentx", &input, "-o", &out, "--span", "0s"]);
    let workload = workload(&out);
    // Three sessions of 5 blocks each, although two have one name.
    assert_eq!(workload.distinct_blocks(), 15);
    let of_first = |session| {
        let requests = workload.requests().iter();
        requests.filter(move |request| request.session_id == session)
    };
    let facts = |session| {
        of_first(session)
            .map(|request| {
                let kind = &*workload.kinds()[usize::from(request.kind)];
                (
                    request.arrival_us,
                    request.step,
                    kind,
                    request.parent_request,
                    request.seen_blocks,
                )
            })
            .collect::<Vec<_>>()
    };
    // Rows are numbered by arrival, three at a time here.
    let parent = [
        (0, 0, "streaming", None, 0),
        (5_000_000, 1, "non-streaming", Some(0), 2),
    ];
    let child = [
        (3_750_000, 0, "subagent", Some(0), 0),
        (5_500_000, 1, "subagent", Some(3), 1),
    ];
    assert_eq!(facts(0), parent);
    assert_eq!(facts(1), child);
    assert_eq!(of_first(0).next().unwrap().tool, Some(0));
}

#[test]
fn session_starts_follow_the_seed() {
    let folder = Folder::new();
    folder.file("a.json", SESSION);
    folder.file("b.json", &SESSION.replace(r#""id": "a""#, r#""id": "b""#));
    folder.file("notes.txt", "not a session");
    let input = folder.0.path().to_str().unwrap();
    let import = |name: &str, seed: &str| {
        let out = folder.path(name);
        run(&[
            "import", "agentx", input, "-o", &out, "--seed", seed, "--span", "1h",
        ]);
        std::fs::read(out).unwrap()
    };
    let first = import("first.parquet", "1");
    assert_eq!(first, import("second.parquet", "1"));
    assert_ne!(first, import("third.parquet", "2"));
    let starts = workload(&folder.path("first.parquet"));
    let starts = starts
        .requests()
        .iter()
        .filter(|request| request.parent_request.is_none());
    let starts: Vec<_> = starts.map(|request| request.arrival_us).collect();
    assert_eq!(starts.len(), 2);
    assert!(
        starts[0] != starts[1]
            && starts
                .iter()
                .all(|start| (0..3_600_000_000).contains(start))
    );
}

#[test]
fn rejected_agent_sessions_are_named_and_nothing_is_written() {
    let cases = [
        (
            SESSION.replace("\"in\": 8", "\"in\": 12"),
            "requests[1].requests[1]: 2 hash_ids; expected 3",
        ),
        (SESSION.replace("\"out\": 2, ", ""), "requests[2]: no `out`"),
        (
            SESSION.replace("5.0", "-5.0"),
            "requests[2]: t -5 is not a time",
        ),
        (SESSION.replace("local", "planet"), "hash_id_scope `planet`"),
        (
            SESSION.replace("\"block_size\": 4", "\"block_size\": 0"),
            "block_size 0",
        ),
        (
            SESSION.replace("[7, 8]", "[8, 7]"),
            "requests[1].requests[1]: block id",
        ),
        (SESSION[..100].to_owned(), "EOF while parsing"),
    ];
    for (text, expected) in cases {
        let folder = Folder::new();
        let input = folder.file("in.json", &text);
        let said = fail(&[
            "import",
            "agentx",
            &input,
            "-o",
            &folder.path("out.parquet"),
        ]);
        assert!(
            said.contains("in.json") && said.contains(expected),
            "{said}"
        );
        assert_eq!(folder.names(), ["in.json"]);
    }
    let folder = Folder::new();
    let input = folder.0.path().to_str().unwrap();
    let said = fail(&["import", "agentx", input, "-o", &folder.path("out.parquet")]);
    assert!(said.contains("no .json"), "{said}");
}

#[test]
fn generated_agents_follow_the_seed_in_blocks_and_in_tokens() {
    let folder = Folder::new();
    let agent = |name: &str, more: &[&str]| {
        let out = folder.path(name);
        let small = [
            "--template-tokens",
            "300",
            "--steps",
            "geometric(8)",
            "--context-tokens",
            "9000",
            "--goal-tokens",
            "99",
        ];
        run(&[&["agent", "-o", &out, "--sessions", "12"][..], &small, more].concat());
        std::fs::read(out).unwrap()
    };
    let first = agent("first.parquet", &["--seed", "3"]);
    assert_eq!(first, agent("same.parquet", &["--seed", "3"]));
    assert_ne!(first, agent("other.parquet", &["--seed", "4"]));
    agent("tokens.parquet", &["--seed", "3", "--tokens"]);
    let (blocks, tokens) = (
        workload(&folder.path("first.parquet")),
        workload(&folder.path("tokens.parquet")),
    );
    assert_eq!(blocks.arena(), tokens.arena());
    assert_eq!(blocks.requests(), tokens.requests());
    assert!(
        blocks
            .requests()
            .iter()
            .any(|request| request.tool.is_some())
    );
}

#[test]
fn the_example_is_what_the_generator_makes() {
    let example = support::example();
    assert!(std::fs::metadata(&example).unwrap().len() <= 1_000_000);
    let folder = Folder::new();
    let out = folder.path("agent.parquet");
    run(&["preset", "example", "-o", &out]);
    let (example, made) = (workload(example.to_str().unwrap()), workload(&out));
    assert_eq!(example.requests(), made.requests());
    assert_eq!(example.arena(), made.arena());
    // Several times what the default capacity of 62.5 GB holds of a 7B model with 524,288 bytes a token.
    let distinct_tokens = u64::from(made.distinct_blocks()) * u64::from(made.block_tokens());
    assert!(distinct_tokens * 524_288 > 5 * 62_500_000_000);
}

#[test]
fn every_family_has_its_command_with_examples_that_parse() {
    for family in trace_gen::families::families() {
        let help = run(&[family.name, "--help"]);
        assert!(
            help.contains("Examples:") && help.contains(family.summary.split(':').next().unwrap())
        );
        for param in family.params().specs() {
            let flag = format!("--{} <VALUE>", param.name);
            assert!(help.contains(&flag), "{}: {flag}", family.name);
            assert!(help.contains(param.default), "{}: {flag}", family.name);
        }
        for example in family.examples {
            let folder = Folder::new();
            let mut args: Vec<&str> = example.split(' ').skip(1).collect();
            let out = folder.path("out.parquet");
            let place = args.iter().position(|arg| *arg == "-o").unwrap() + 1;
            args[place] = &out;
            let sessions = args.iter().position(|arg| *arg == "--sessions");
            match sessions {
                Some(place) => args[place + 1] = "2",
                None => args.extend(["--sessions", "2"]),
            }
            run(&args);
            assert_eq!(
                inspect(&out)["content"],
                if example.contains("--tokens ") {
                    "tokens"
                } else {
                    "blocks"
                }
            );
        }
    }
}

#[test]
fn tools_chain_on_files() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let (a, b, out) = (path("a.parquet"), path("b.parquet"), path("out.parquet"));
    run(&["preset", "repeat-03", "-o", &a]);
    run(&["preset", "repeat-99", "-o", &b, "--seed", "1"]);
    run(&["merge", &a, &b, "-o", &out]);
    let merged = inspect(&out);
    assert_eq!(merged["requests"], 3_400);
    run(&[
        "cut",
        &out,
        "-o",
        &path("cut.parquet"),
        "--skip",
        "100",
        "--limit",
        "50",
        "--rebase",
    ]);
    assert_eq!(inspect(&path("cut.parquet"))["requests"], 50);
    run(&[
        "sample",
        &b,
        "-o",
        &path("sample.parquet"),
        "--share",
        "0.5",
    ]);
    let sampled = inspect(&path("sample.parquet"))["sessions"]
        .as_u64()
        .unwrap();
    assert!((4..=16).contains(&sampled), "{sampled}");
    run(&["shuffle-sessions", &b, "-o", &path("shuffled.parquet")]);
    run(&[
        "rescale-time",
        &b,
        "-o",
        &path("fast.parquet"),
        "--factor",
        "0.5",
    ]);
    let salt = folder.file("salt", "nobody knows\n");
    run(&[
        "anonymise",
        &b,
        "-o",
        &path("masked.parquet"),
        "--salt-file",
        &salt,
    ]);
    for name in ["shuffled.parquet", "fast.parquet", "masked.parquet"] {
        assert_eq!(
            inspect(&path(name))["distinct_blocks"],
            inspect(&b)["distinct_blocks"],
            "{name}"
        );
    }
    let said = fail(&["sample", &a, "-o", &out, "--share", "2"]);
    assert!(said.contains("share of sessions"), "{said}");
    let said = fail(&["plan", &salt, "-o", &out]);
    assert!(said.contains("salt"), "{said}");
}

#[test]
fn a_comparison_is_for_people_and_for_plots() {
    let folder = Folder::new();
    let (a, b) = (folder.path("a.parquet"), folder.path("b.parquet"));
    run(&["preset", "repeat-03", "-o", &a]);
    run(&["preset", "repeat-99", "-o", &b]);
    let table = run(&["compare", &a, &b]);
    assert!(
        table.contains("reuse_distance_tokens") && table.lines().all(|line| line.len() <= 108),
        "{table}"
    );
    let csv = run(&["compare", &a, &b, "--format", "csv"]);
    // Single requests have no gap within a session.
    assert_eq!(csv.lines().count(), 1 + 7 * 99);
    let json: serde_json::Value =
        serde_json::from_str(&run(&["compare", &a, &b, "--format", "json"])).unwrap();
    assert_eq!(json["dimensions"][0]["name"], "prompt_tokens");
}

#[test]
fn errors_are_one_line_and_usage_is_two() {
    let folder = Folder::new();
    let csv = folder.file("trace.csv", "request_id,arrival_us\n1,2\n");
    let said = fail(&["inspect", &csv]);
    assert!(
        said.starts_with("error: ") && said.contains("does not begin with PAR1"),
        "{said}"
    );
    let said = fail(&["ledger", "-o", &folder.path("none/ledger.parquet")]);
    assert!(said.contains("No such file"), "{said}");
    let said = fail(&["agent", "-o", &folder.path("agent.parquet"), "--users", "0"]);
    assert!(said.contains("`users` is"), "{said}");
    assert_eq!(folder.names(), ["trace.csv"]);
    for usage in [
        &["ledger"][..],
        &["import", "csv", "x"],
        &["import", "agentx", "x", "-o", "y", "--span", "4x"],
        &[
            "import",
            "lmcache-agent",
            "x",
            "-o",
            "y",
            "--tokenizer",
            "none",
        ],
        &["import", "mooncake", "x", "-o", "y", "--block-tokens", "0"],
        &["export", "csv", "x", "-o", "y"],
    ] {
        assert_eq!(trace_gen(usage).status.code(), Some(2));
    }
    assert!(run(&["--help"]).contains("Examples:"));
}

#[test]
fn inspect_prints_a_table_that_fits() {
    let folder = Folder::new();
    let out = folder.path("ledger.parquet");
    run(&["ledger", "-o", &out]);
    let table = run(&["inspect", &out]);
    assert!(
        table.contains("prompt tokens") && table.contains("97,000"),
        "{table}"
    );
    assert!(
        table.lines().skip(1).all(|line| line.len() <= 100),
        "{table}"
    );
}

#[test]
fn mooncake_conversation_has_its_known_figures() {
    let Some(input) = shared("mooncake/conversation_trace.jsonl") else {
        return;
    };
    let folder = Folder::new();
    let out = folder.path("mooncake.parquet");
    run(&["import", "mooncake", input.to_str().unwrap(), "-o", &out]);
    let summary = inspect(&out);
    assert_eq!(summary["requests"], 12_031);
    assert_eq!(summary["block_touches"], 276_491);
    assert_eq!(summary["distinct_blocks"], 170_899);
    let rate = summary["infinite_cache_token_hit_rate"].as_f64().unwrap();
    assert_eq!(format!("{rate:.4}"), "0.3734");
}

#[test]
fn claude_code_sessions_have_their_known_figures() {
    let Some(input) = shared("claude-code-sessions") else {
        return;
    };
    let folder = Folder::new();
    let out = folder.path("sessions.parquet");
    let said = stderr(&trace_gen(&[
        "import",
        "agentx",
        input.to_str().unwrap(),
        "-o",
        &out,
    ]));
    assert!(
        said.contains("251 sessions; 36 sub-agents with 372 requests"),
        "{said}"
    );
    let summary = inspect(&out);
    assert_eq!(summary["requests"], 17_272);
    assert_eq!(summary["block_touches"], 30_565_087);
    assert_eq!(summary["distinct_blocks"], 1_186_962);
    let rate = summary["infinite_cache_token_hit_rate"].as_f64().unwrap();
    assert_eq!(format!("{rate:.4}"), "0.9609");
    // The sessions' starts are those of the published characterisation: so is LRU's rate, with few blocks and with more.
    let args = ["--trace", &out, "--capacity", "1%,5%", "--format", "json"];
    let runs = support::json(&support::run(REPLAY, Path::new("."), &args));
    let rate = |run: usize| runs["runs"][run]["token_hit_rate"].as_f64().unwrap();
    assert_eq!(
        [0, 1].map(|run| format!("{:.3}", rate(run))),
        ["0.297", "0.880"]
    );
}

/// As `trace-gen ... | head` leaves it.
#[test]
fn a_reader_that_went_away_is_no_error() {
    let example = support::example();
    let example = example.to_str().unwrap();
    for args in [
        &["inspect", example][..],
        &["inspect", example, "--format", "json"],
        &["compare", example, example],
        &["compare", example, example, "--format", "json"],
        &["compare", example, example, "--format", "csv"],
    ] {
        let mut child = Command::new(TRACE_GEN)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn formats_are_listed_and_their_options_described() {
    let formats = run(&["import", "--help"]);
    for format in trace_import::import::FORMATS {
        assert!(formats.contains(format.name), "{}", format.name);
        let help = run(&["import", format.name, "--help"]);
        assert!(
            help.contains("--strict") && help.contains(format.details),
            "{help}"
        );
        for option in format.options {
            assert!(help.contains(&format!("--{}", option.name)), "{help}");
        }
    }
    let targets = run(&["export", "--help"]);
    for target in trace_import::export::EXPORT_FORMATS {
        assert!(targets.contains(target.about), "{targets}");
    }
}

#[test]
fn an_exported_trace_is_what_an_import_takes() {
    let folder = Folder::new();
    let (ledger, lines) = (folder.path("ledger.parquet"), folder.path("ledger.jsonl"));
    let again = folder.path("again.parquet");
    run(&["ledger", "-o", &ledger]);
    run(&["export", "jsonl", &ledger, "-o", &lines]);
    run(&["import", "jsonl", &lines, "-o", &again, "--strict"]);
    assert_eq!(
        std::fs::read(&ledger).unwrap(),
        std::fs::read(&again).unwrap()
    );
    let said = fail(&["export", "mooncake", &lines, "-o", &folder.path("x")]);
    assert!(said.contains("does not begin with PAR1"), "{said}");
    assert_eq!(
        folder.names(),
        ["again.parquet", "ledger.jsonl", "ledger.parquet"]
    );
}

#[test]
fn strict_is_refused_with_the_reason() {
    let folder = Folder::new();
    let input = folder.file(
        "in.jsonl",
        r#"{"timestamp": 5, "input_length": 100, "output_length": 3, "hash_ids": [0]}
{"timestamp": 2, "input_length": 100, "output_length": 3, "hash_ids": [1]}
"#,
    );
    let out = folder.path("out.parquet");
    let said = fail(&["import", "mooncake", &input, "-o", &out, "--strict"]);
    assert!(said.contains("changed  1 rows were out of order"), "{said}");
    assert_eq!(folder.names(), ["in.jsonl"]);
}

/// LRU's hit rate at a capacity in per cent of the distinct blocks.
fn lru_curve(trace: &str) -> Vec<f64> {
    let capacities = "1%,2%,5%,10%,25%,50%";
    let args = [
        "--trace",
        trace,
        "--capacity",
        capacities,
        "--format",
        "json",
    ];
    let report = support::json(&support::run(REPLAY, Path::new("."), &args));
    let rate = |run: &serde_json::Value| run["token_hit_rate"].as_f64().unwrap();
    report["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(rate)
        .collect()
}

#[test]
fn fitted_agents_have_the_hit_rate_curve_of_the_real_ones() {
    let Some(input) = shared("claude-code-sessions") else {
        return;
    };
    let folder = Folder::new();
    let (real, plan, like) = (
        folder.path("real.parquet"),
        folder.path("fit.toml"),
        folder.path("like.parquet"),
    );
    run(&["import", "agentx", input.to_str().unwrap(), "-o", &real]);
    run(&["fit", &real, "-o", &plan]);
    run(&[
        "plan",
        &plan,
        "-o",
        &like,
        "--block-tokens",
        "64",
        "--unknown-outputs",
    ]);
    let (real, like) = (lru_curve(&real), lru_curve(&like));
    eprintln!("real   {real:.3?}\nfitted {like:.3?}");
    for (real, like) in real.iter().zip(&like) {
        assert!((real - like).abs() < 0.03, "{real} and {like}");
    }
}
