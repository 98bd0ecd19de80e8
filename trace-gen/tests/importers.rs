//! Importers and exporters, run as a caller runs them: real data, small cases of every format, what is refused.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use trace::{LoadOptions, Request, Workload, load};
use trace_gen::GenError;
use trace_gen::export::{Export, TARGETS};
use trace_gen::import::{FORMATS, Imported, Job, Values};
use trace_gen::inspect::{Summary, inspect};

/// A folder for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn try_import(
    format: &str,
    input: &Path,
    out: &Path,
    options: &[(&str, &str)],
    strict: bool,
) -> Result<Imported, GenError> {
    let format = FORMATS.iter().find(|known| known.name == format).unwrap();
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Job {
        format,
        input,
        out,
        strict,
        values: Values::new(format, options)?,
        progress: &mut |_, _| {},
    }
    .run()
}

/// Imports what must be importable; what it says, line by line.
fn import(format: &str, input: &Path, out: &Path, options: &[(&str, &str)]) -> String {
    let imported = try_import(format, input, out, options, false).unwrap();
    let notes = imported.notes.iter().map(|note| format!("{note}\n"));
    format!(
        "{} requests, {} sessions\n{}",
        imported.requests,
        imported.sessions,
        notes.collect::<String>()
    )
}

fn imported(format: &str, name: &str, text: &str, options: &[(&str, &str)]) -> (String, Workload) {
    let folder = Folder::new();
    let input = folder.file(name, text);
    let out = folder.path("out.parquet");
    let said = import(format, &input, &out, options);
    (said, workload(&out, None))
}

fn workload(path: &Path, block_tokens: Option<u32>) -> Workload {
    let options = LoadOptions {
        block_tokens,
        ..LoadOptions::default()
    };
    load(path, &options).unwrap().workload
}

fn column<T>(workload: &Workload, of: impl Fn(&Request) -> T) -> Vec<T> {
    workload.requests().iter().map(of).collect()
}

fn arrivals_ms(workload: &Workload) -> Vec<i64> {
    column(workload, |request| request.arrival_us / 1_000)
}

/// A file or folder of the optional test data, which lies beside the repository.
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

/// The figures of a real data set after its import, and what the import said.
fn real(
    format: &str,
    name: &str,
    options: &[(&str, &str)],
    block_tokens: Option<u32>,
) -> Option<(Summary, String)> {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let said = import(format, &shared(name)?, &out, options);
    Some((inspect(&out, block_tokens).unwrap(), said))
}

fn rate(summary: &Summary) -> String {
    format!("{:.3}", summary.infinite_cache_token_hit_rate.unwrap())
}

const UNKNOWN_OUTPUTS: &[(&str, &str)] = &[("no-outputs", "true")];

#[test]
fn miniswe_has_its_known_figures() {
    let name = "lmcache-agent-trace/miniswe";
    let Some((summary, said)) = real("lmcache-agent", name, UNKNOWN_OUTPUTS, Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (267, 14));
    assert_eq!(format!("{:.0}", summary.span_seconds), "552");
    assert_eq!(summary.block_touches, 93_565);
    assert_eq!(summary.distinct_blocks, 5_842);
    assert_eq!(rate(&summary), "0.936");
    assert!(
        said.contains("changed  74 rows were out of order"),
        "{said}"
    );
}

#[test]
fn magagent_has_its_known_figures() {
    let name = "lmcache-agent-trace/magagent";
    let Some((summary, said)) = real("lmcache-agent", name, UNKNOWN_OUTPUTS, Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (481, 17));
    assert_eq!(summary.block_touches, 65_481);
    assert_eq!(summary.distinct_blocks, 11_390);
    assert_eq!(rate(&summary), "0.823");
    assert!(said.contains("kept     45 prompts are empty"), "{said}");
    assert!(
        said.contains("316 prompts repeat an earlier prompt"),
        "{said}"
    );
}

#[test]
fn tau_bench_has_its_known_rates_without_and_with_outputs() {
    let without = real("tau-bench", "tau-bench", UNKNOWN_OUTPUTS, Some(64));
    let with = real("tau-bench", "tau-bench", &[], Some(64));
    let (Some((without, _)), Some((with, _))) = (without, with) else {
        return;
    };
    assert_eq!((without.requests, without.sessions), (2_166, 160));
    assert_eq!(rate(&without), "0.937");
    assert_eq!(rate(&with), "0.960");
}

#[test]
fn ragpulse_segments_are_chained() {
    let Some((summary, said)) = real("ragpulse", "ragpulse", &[], Some(16)) else {
        return;
    };
    assert_eq!(summary.requests, 3_800);
    assert_eq!(rate(&summary), "0.315");
    // Without the template's tokens in the denominator.
    let template: u64 = said
        .split(" template tokens")
        .next()
        .and_then(|text| text.split_whitespace().last())
        .unwrap()
        .parse()
        .unwrap();
    let hits = summary.infinite_cache_hit_tokens as f64;
    let known = (summary.prompt_tokens - template) as f64;
    assert_eq!(format!("{:.3}", hits / known), "0.316");
}

#[test]
fn swe_agent_runs_become_sessions() {
    let Some((summary, said)) = real("swe-agent", "swe-agent", &[], Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (114, 12));
    assert!(
        said.contains("1 runs recorded the prompts as sent"),
        "{said}"
    );
}

#[test]
fn azure_is_refused_until_told_how_to_invent_identity() {
    let name = "azure-llm-2023/AzureLLMInferenceTrace_code.csv";
    let Some(input) = shared(name) else { return };
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let fault = try_import("azure", &input, &out, &[], false).unwrap_err();
    assert!(fault.to_string().contains("no prefix identity"), "{fault}");
    assert!(folder.names().is_empty());
    let (summary, _) = real("azure", name, &[("identity", "unique")], None).unwrap();
    assert_eq!(summary.requests, 8_819);
    assert_eq!(summary.infinite_cache_hit_tokens, 0);
    let mean = |quantiles: Option<trace_gen::inspect::Quantiles>| quantiles.unwrap().mean.round();
    assert_eq!(mean(summary.prompt_tokens_quantiles), 2_048.0);
    assert_eq!(mean(summary.output_tokens_quantiles), 28.0);
    let (summary, _) = real("azure", name, &[("identity", "shared:160")], None).unwrap();
    assert!(summary.infinite_cache_hit_tokens > 8_000 * 160);
}

#[test]
fn parquet_rows_of_sessions_are_like_json_ones() {
    let session = |id| {
        format!(
            r#"{{"id": "{id}", "block_size": 4, "hash_id_scope": "local", "requests": [
            {{"t": 0.0, "type": "s", "in": 9, "out": 0, "hash_ids": [1, 2], "stop": "tool_use"}},
            {{"t": 3.5, "type": "subagent", "requests": [
              {{"t": 0.25, "type": "n", "in": 4, "out": 5, "hash_ids": [7]}},
              {{"t": 2.0, "type": "n", "in": 8, "out": 5, "hash_ids": [7, 8]}}]}},
            {{"t": 5.0, "type": "n", "in": 13, "out": 2, "hash_ids": [1, 2, 3]}}]}}"#
        )
        .replace('\n', " ")
    };
    let lines = format!("{}\n{}\n", session("a"), session("b"));
    let (_, json) = imported("agentx", "in.jsonl", &lines, &[]);
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/agentx.parquet");
    import("agentx", &rows, &out, &[]);
    let rows = workload(&out, None);
    assert_eq!(rows.requests(), json.requests());
    assert_eq!(rows.arena(), json.arena());
    assert_eq!(rows.requests().len(), 8);
}

const QWEN: &str = r#"{"chat_id":7,"parent_chat_id":-1,"timestamp":0.5,"input_length":40,"output_length":9,"type":"text","turn":1,"hash_ids":[1,2,3]}
{"chat_id":9,"parent_chat_id":7,"timestamp":2,"input_length":64,"output_length":1,"type":"text","turn":2,"hash_ids":[1,2,4,5]}
{"chat_id":10,"parent_chat_id":3,"timestamp":2,"input_length":16,"output_length":1,"type":"search","turn":2,"hash_ids":[1]}
"#;

#[test]
fn qwen_chats_are_sessions_and_their_ids_chained_where_needed() {
    let (said, prefix) = imported("qwen-bailian", "in.jsonl", QWEN, &[]);
    assert!(said.starts_with("3 requests, 2 sessions"), "{said}");
    assert!(
        said.contains("kept     1 requests continue a chat"),
        "{said}"
    );
    assert!(!said.contains("chained"), "{said}");
    assert_eq!(arrivals_ms(&prefix), [500, 2_000, 2_000]);
    assert_eq!(column(&prefix, |request| request.session_id), [0, 0, 1]);
    assert_eq!(column(&prefix, |request| request.step), [0, 1, 1]);
    let parents = column(&prefix, |request| request.parent_request);
    assert_eq!(parents, [None, Some(0), None]);
    assert_eq!(column(&prefix, |request| request.seen_blocks), [0, 2, 1]);
    assert_eq!(column(&prefix, |request| request.path_blocks), [2, 4, 1]);

    let content = QWEN.replace("[1,2,4,5]", "[1,2,4,2]");
    let (said, chained) = imported("qwen-bailian", "in.jsonl", &content, &[]);
    assert!(
        said.contains("changed  ids taken as names of content"),
        "{said}"
    );
    assert_eq!(column(&chained, |request| request.seen_blocks), [0, 2, 1]);
    assert_eq!(chained.distinct_blocks(), 4);
    let folder = Folder::new();
    let input = folder.file("in.jsonl", &content);
    let out = folder.path("out.parquet");
    let prefix = [("ids", "prefix")];
    let fault = try_import("qwen-bailian", &input, &out, &prefix, false).unwrap_err();
    assert!(fault.to_string().contains("line 2"), "{fault}");
}

const AIPERF: &str = r#"{"session_id": "a", "timestamp": 1000, "input_length": 1024, "output_length": 10, "hash_ids": [1, 2]}
{"session_id": "a", "delay": 500, "input_length": 1030, "output_length": 20, "hash_ids": [1, 2, 3]}
{"timestamp": 1100, "input_length": 512, "output_length": 1, "hash_ids": [9]}
{"session_id": "a", "delay": 100, "input_length": 1536, "output_length": 1, "hash_ids": [1, 2, 4]}
"#;

#[test]
fn aiperf_sessions_wait_for_the_answer_and_their_delay() {
    let (said, workload) = imported("aiperf", "in.jsonl", AIPERF, &[]);
    assert!(said.starts_with("4 requests, 2 sessions"), "{said}");
    // 10 tokens at 20 ms and a delay of 500 ms; then 20 tokens and 100 ms.
    assert_eq!(arrivals_ms(&workload), [1_000, 1_100, 1_700, 2_200]);
    let parents = column(&workload, |request| request.parent_request);
    assert_eq!(parents, [None, None, Some(0), Some(2)]);
    assert_eq!(
        column(&workload, |request| request.path_blocks),
        [2, 1, 2, 3]
    );
}

const CHAT: &str = r#"{"timestamp": 20.5, "session_id": "s", "model": "m", "messages": [{"role": "user", "content": "hello"}], "choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": [{"function": {"name": "search"}}]}}]}
{"custom_id": "x", "timestamp": 20, "body": {"tools": [{"name": "t"}], "messages": [{"role": "user", "content": "hello"}]}}
{"timestamp": 30, "session_id": "s", "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}], "output": "done"}
"#;

#[test]
fn chat_requests_become_tokens() {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", CHAT);
    let out = folder.path("out.parquet");
    let said = import("openai-chat", &input, &out, &[]);
    assert!(said.starts_with("3 requests, 2 sessions"), "{said}");
    assert!(said.contains("changed  1 rows were out of order"), "{said}");
    assert!(said.contains("1 requests were logged without"), "{said}");
    let bytes = workload(&out, Some(1));
    assert_eq!(arrivals_ms(&bytes), [0, 500, 10_000]);
    let first = r#"{"role":"user","content":"hello"}"#.len() as u32 + 1;
    let tools = r#"{"name":"t"}"#.len() as u32 + 1;
    let lengths = column(&bytes, |request| request.prompt_tokens);
    assert_eq!(lengths[..2], [tools + first, first]);
    // The follow-up shares the first message, and the answer's up to where it called a tool.
    let common = r#"{"role":"assistant","content":"hi""#.len() as u32;
    let seen = column(&bytes, |request| request.seen_blocks);
    assert_eq!(seen, [0, "{\"".len() as u32, first + common]);
    assert_eq!(bytes.tools(), ["search"]);
    assert_eq!(
        column(&bytes, |request| request.parent_request),
        [None, None, Some(1)]
    );

    let o200k = folder.path("o200k.parquet");
    import(
        "openai-chat",
        &input,
        &o200k,
        &[("tokenizer", "o200k_base")],
    );
    let o200k = workload(&o200k, Some(1));
    // {"role":"user","content":"hello"} and a line end: 9 tokens or so, not 34.
    let short = o200k.requests()[1].prompt_tokens;
    assert!((6..=12).contains(&short), "{short}");
    assert!(o200k.requests()[2].seen_blocks >= short);
}

#[test]
fn chat_requests_without_times_arrive_one_after_another() {
    let text = CHAT
        .replace("\"timestamp\": 20.5, ", "")
        .replace("\"timestamp\": 20, ", "");
    let text = text.replace("\"timestamp\": 30, ", "");
    let gap = [("step-gap", "2s")];
    let (said, workload) = imported("openai-chat", "in.jsonl", &text, &gap);
    assert!(said.contains("requests arrive 2 s apart"), "{said}");
    assert_eq!(arrivals_ms(&workload), [0, 2_000, 4_000]);
    let dated = CHAT.replace("20.5", "\"1970-01-01T00:00:01Z\"");
    let dated = dated.replace(": 20,", ": \"1970-01-01T00:00:00Z\",");
    let dated = dated.replace(": 30,", ": \"1970-01-01 00:01:00.25\",");
    let (_, workload) = imported("openai-chat", "in.jsonl", &dated, &[("time-unit", "date")]);
    assert_eq!(arrivals_ms(&workload), [0, 1_000, 60_250]);
}

const SHAREGPT: &str = r#"[{"id": "a", "conversations": [{"from": "human", "value": "1"}, {"from": "gpt", "value": "2"},
 {"from": "human", "value": "3"}, {"from": "gpt", "value": "4"}]},
 {"id": "b", "conversations": [{"from": "human", "value": "1"}]},
 {"id": "c", "conversations": [{"from": "gpt", "value": "2"}]}]"#;

#[test]
fn sharegpt_conversations_run_so_many_at_a_time() {
    let one = [("at-once", "1")];
    let (said, workload) = imported("sharegpt", "in.json", SHAREGPT, &one);
    assert!(said.starts_with("3 requests, 2 sessions"), "{said}");
    assert!(
        said.contains("dropped  1 conversations without an answer"),
        "{said}"
    );
    assert!(said.contains("kept     1 prompts are empty"), "{said}");
    assert_eq!(arrivals_ms(&workload), [0, 1_000, 2_000]);
    let line = r#"{"role":"user","content":"1"}"#.len() as u32 + 1;
    let answer = r#"{"role":"assistant","content":"2"}"#.len() as u32 + 1;
    let lengths = column(&workload, |request| request.prompt_tokens);
    assert_eq!(lengths, [line, 2 * line + answer, 0]);
    let (_, together) = imported("sharegpt", "in.json", SHAREGPT, &[]);
    assert_eq!(arrivals_ms(&together)[0], 0);
    assert_eq!(arrivals_ms(&together).len(), 3);
}

const CLAUDE: &str = r#"{"type":"summary","summary":"x","leafUuid":"z"}
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T10:00:00.000Z","message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T10:00:03.000Z","message":{"id":"m1","model":"c","content":[{"type":"thinking"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":990,"cache_read_input_tokens":0,"output_tokens":50}}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s","timestamp":"2026-01-01T10:00:04.000Z","message":{"id":"m1","model":"c","content":[{"type":"tool_use","name":"Bash"}],"usage":{"input_tokens":10,"cache_creation_input_tokens":990,"cache_read_input_tokens":0,"output_tokens":120}}}
{"type":"user","uuid":"u2","parentUuid":"a2","sessionId":"s","timestamp":"2026-01-01T10:00:10.000Z","message":{"role":"user","content":[]}}
{"type":"user","uuid":"s1","parentUuid":null,"isSidechain":true,"sessionId":"s","timestamp":"2026-01-01T10:00:11.000Z","message":{"role":"user","content":"sub"}}
{"type":"assistant","uuid":"a3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-01T10:00:12.000Z","message":{"id":"m2","model":"c","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":195,"cache_read_input_tokens":1000,"output_tokens":30}}}
{"type":"assistant","uuid":"s2","parentUuid":"s1","isSidechain":true,"sessionId":"s","timestamp":"2026-01-01T10:00:13.000Z","message":{"id":"m3","model":"c","content":[],"usage":{"input_tokens":500,"output_tokens":10}}}
{"type":"user","uuid":"u3","parentUuid":"a3","sessionId":"s","timestamp":"2026-01-01T10:00:20.000Z","message":{"role":"user","content":"more"}}
{"type":"assistant","uuid":"x","parentUuid":"u3","sessionId":"s","timestamp":"2026-01-01T10:00:21.000Z","message":{"id":"e","model":"<synthetic>","content":[],"usage":{"input_tokens":0,"output_tokens":0}}}
{"type":"assistant","uuid":"a4","parentUuid":"x","sessionId":"s","timestamp":"2026-01-01T10:00:22.000Z","message":{"id":"m4","model":"c","content":[],"usage":{"input_tokens":400,"output_tokens":0}}}
"#;

#[test]
fn claude_code_logs_are_checked_against_the_provider() {
    let (said, workload) = imported("claude-code", "log.jsonl", CLAUDE, &[]);
    assert!(said.starts_with("4 requests, 2 sessions"), "{said}");
    // 15 blocks of 64 of the first prompt, and 6 of it for the shortened one.
    assert!(
        said.contains("of 3100 prompt tokens the provider read 1000 from its cache (0.3226)")
            && said.contains("had 1344 (0.4335)"),
        "{said}"
    );
    assert!(said.contains("kept     1 prompts are shorter"), "{said}");
    assert_eq!(arrivals_ms(&workload), [0, 10_000, 11_000, 21_000]);
    let lengths = column(&workload, |request| {
        (request.prompt_tokens, request.output_tokens)
    });
    assert_eq!(lengths, [(1_000, 120), (1_200, 30), (500, 10), (400, 0)]);
    let parents = column(&workload, |request| request.parent_request);
    assert_eq!(parents, [None, Some(0), None, Some(1)]);
    assert_eq!(
        column(&workload, |request| request.seen_blocks),
        [0, 15, 0, 6]
    );
    let kinds = column(&workload, |request| {
        &*workload.kinds()[usize::from(request.kind)]
    });
    assert_eq!(kinds, ["", "", "subagent", ""]);
    assert_eq!(workload.tools(), ["Bash"]);

    let shared = [("system-tokens", "256")];
    let (_, workload) = imported("claude-code", "log.jsonl", CLAUDE, &shared);
    assert_eq!(
        column(&workload, |request| request.seen_blocks),
        [0, 15, 4, 6]
    );
}

#[test]
fn a_resumed_session_repeats_no_request() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("project")).unwrap();
    folder.file("project/a.jsonl", CLAUDE);
    folder.file(
        "project/b.jsonl",
        CLAUDE.replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\""),
    );
    let out = folder.path("out.parquet");
    let said = import("claude-code", &folder.path(""), &out, &[]);
    assert!(said.starts_with("4 requests, 2 sessions"), "{said}");
}

const TABLE: &str = "when,in,out,who,blocks,what\n\
    1.5,9,2,ann,1 2 3,chat\n\
    2,8,0,bob,1;2,chat\n\
    1.5,4,1,ann,\"[1]\",\n";
const TABLE_MAP: &str = "arrival=when,prompt_tokens=in,output_tokens=out,session=who,kind=what";

#[test]
fn columns_of_a_table_have_the_roles_they_are_given() {
    let map = format!("{TABLE_MAP},ids=blocks");
    let options = [("map", &*map), ("block-tokens", "4")];
    let (said, workload) = imported("csv", "in.csv", TABLE, &options);
    assert!(said.starts_with("3 requests, 2 sessions"), "{said}");
    assert!(said.contains("changed  1 rows were out of order"), "{said}");
    assert!(
        said.contains("1 requests end in a partial last block"),
        "{said}"
    );
    assert_eq!(arrivals_ms(&workload), [0, 0, 500]);
    assert_eq!(
        column(&workload, |request| request.prompt_tokens),
        [9, 4, 8]
    );
    assert_eq!(column(&workload, |request| request.seen_blocks), [0, 1, 2]);
    assert_eq!(workload.kinds(), ["", "chat"]);

    let invented = [
        ("map", TABLE_MAP),
        ("block-tokens", "4"),
        ("identity", "shared:4"),
    ];
    let (_, workload) = imported("csv", "in.csv", TABLE, &invented);
    assert_eq!(column(&workload, |request| request.seen_blocks), [0, 1, 1]);

    let texts = [
        ("map", "arrival=when,prompt=blocks,output=what"),
        ("delimiter", ","),
    ];
    let (_, workload) = imported("csv", "in.csv", TABLE, &texts);
    let lengths = column(&workload, |request| {
        (request.prompt_tokens, request.output_tokens)
    });
    assert_eq!(lengths, [(5, 4), (3, 0), (3, 4)]);
}

#[test]
fn burstgpt_rows_keep_their_log_type() {
    let text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
        5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,API log\n";
    let identity = [("identity", "unique")];
    let (said, workload) = imported("burstgpt", "in.csv", text, &identity);
    assert!(said.contains("prompts are invented (unique)"), "{said}");
    assert!(said.contains("kept     1 outputs have no tokens"), "{said}");
    assert_eq!(arrivals_ms(&workload), [0, 40_000]);
    assert_eq!(workload.kinds(), ["", "Conversation log", "API log"]);
}

fn records(rows: &[(u32, u64, u32, i64)]) -> Vec<u8> {
    let record = |&(time_s, object, size, next): &(u32, u64, u32, i64)| {
        [
            &time_s.to_le_bytes()[..],
            &object.to_le_bytes(),
            &size.to_le_bytes(),
            &next.to_le_bytes(),
        ]
        .concat()
    };
    rows.iter().flat_map(record).collect()
}

/// Objects in order of first touch, of one size; next accesses count from 1.
const OBJECTS: [(u32, u64, u32, i64); 5] = [
    (0, 0, 16, 3),
    (1, 1, 16, 5),
    (1, 0, 16, -1),
    (2, 2, 16, -1),
    (9, 1, 16, -1),
];

fn export(target: &str, trace: &Path, out: &Path, block_tokens: Option<u32>) {
    let target = TARGETS.iter().find(|known| known.name == target).unwrap();
    let export = Export {
        target,
        trace,
        out,
        block_tokens,
    };
    export.run().unwrap();
}

#[test]
fn objects_survive_import_and_export() {
    let folder = Folder::new();
    let input = folder.file("in.bin", records(&OBJECTS));
    let (trace, out) = (folder.path("out.parquet"), folder.path("out.bin"));
    let said = import("oracle-general", &input, &trace, &[]);
    assert!(said.starts_with("5 requests"), "{said}");
    let summary = inspect(&trace, None).unwrap();
    // A hit is a whole object: two of five accesses.
    assert_eq!(summary.infinite_cache_hit_tokens, 2 * 16);
    export("oracle-general", &trace, &out, None);
    assert_eq!(std::fs::read(&out).unwrap(), records(&OBJECTS));
}

/// A generated trace with hints, outputs and sessions, in blocks or in tokens.
fn generated(folder: &Folder, tokens: bool) -> PathBuf {
    let path = folder.path("generated.parquet");
    let options = trace_gen::agent::Options {
        sessions: 4,
        tokens,
        ..trace_gen::agent::Options::default()
    };
    trace_gen::agent::write(&path, &options).unwrap();
    path
}

#[test]
fn json_lines_give_the_same_bytes_again() {
    for tokens in [false, true] {
        let folder = Folder::new();
        let trace = generated(&folder, tokens);
        let (lines, again) = (folder.path("lines.jsonl"), folder.path("again.parquet"));
        export("jsonl", &trace, &lines, None);
        import("jsonl", &lines, &again, &[]);
        assert_eq!(
            std::fs::read(&trace).unwrap(),
            std::fs::read(&again).unwrap()
        );
    }
}

#[test]
fn mooncake_lines_keep_arrivals_lengths_and_prefixes() {
    for tokens in [false, true] {
        let folder = Folder::new();
        let trace = generated(&folder, tokens);
        let block_tokens = workload(&trace, None).block_tokens();
        let (lines, again) = (folder.path("lines.jsonl"), folder.path("again.parquet"));
        export("mooncake", &trace, &lines, None);
        let size = block_tokens.to_string();
        import("mooncake", &lines, &again, &[("block-tokens", &*size)]);
        let (before, after) = (workload(&trace, None), workload(&again, None));
        let facts = |workload: &Workload| {
            column(workload, |request| {
                (
                    request.arrival_us,
                    request.prompt_tokens,
                    request.output_tokens,
                )
            })
        };
        assert_eq!(facts(&before), facts(&after));
        // Equal ids before are equal ids after, and different ones different.
        let mut pairs = std::collections::BTreeSet::new();
        for (a, b) in before.requests().iter().zip(after.requests()) {
            let prompt = &before.path(a)[..a.prompt_blocks as usize];
            assert_eq!(prompt.len(), after.path(b).len());
            pairs.extend(prompt.iter().copied().zip(after.path(b).iter().copied()));
        }
        assert_eq!(pairs.len(), after.distinct_blocks() as usize);
    }
}

#[test]
fn mooncake_lines_exported_twice_are_the_same() {
    let folder = Folder::new();
    let lines = r#"{"timestamp":2.5,"input_length":1100,"output_length":3,"hash_ids":[0,1,2]}
{"timestamp":5,"input_length":1024,"output_length":3,"hash_ids":[0,1]}
"#;
    let input = folder.file("in.jsonl", lines);
    let (trace, out) = (folder.path("out.parquet"), folder.path("out.jsonl"));
    import("mooncake", &input, &trace, &[]);
    export("mooncake", &trace, &out, None);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), lines);
}

#[test]
fn flat_objects_of_a_path_come_leaf_first_with_their_next_access() {
    let folder = Folder::new();
    let lines = r#"{"timestamp":1000,"input_length":1024,"output_length":1,"hash_ids":[0,1]}
{"timestamp":3500,"input_length":1536,"output_length":1,"hash_ids":[0,1,2]}
"#;
    let input = folder.file("in.jsonl", lines);
    let (trace, out) = (folder.path("out.parquet"), folder.path("out.bin"));
    import("mooncake", &input, &trace, &[]);
    export("oracle-general", &trace, &out, None);
    let expected = [
        (1, 1, 512, 4),
        (1, 0, 512, 5),
        (3, 2, 512, -1),
        (3, 1, 512, -1),
        (3, 0, 512, -1),
    ];
    assert_eq!(std::fs::read(&out).unwrap(), records(&expected));
}

#[test]
fn strict_refuses_what_would_be_changed_or_dropped() {
    let sorted = r#"{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [0, 1]}
{"timestamp": 2, "input_length": 513, "output_length": 1, "hash_ids": [0, 2]}
"#;
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let good = folder.file("good.jsonl", sorted);
    try_import("mooncake", &good, &out, &[], true).unwrap();
    std::fs::remove_file(&out).unwrap();
    let unsorted = folder.file("unsorted.jsonl", sorted.replace(": 2,", ": 0,"));
    let conversations = folder.file("talk.json", SHAREGPT);
    let cases = [
        ("mooncake", unsorted, "changed  1 rows were out of order"),
        (
            "sharegpt",
            conversations,
            "dropped  1 conversations without",
        ),
    ];
    for (format, input, expected) in cases {
        let fault = try_import(format, &input, &out, &[], true).unwrap_err();
        assert!(fault.to_string().contains(expected), "{fault}");
        assert!(!out.exists());
    }
}

const LMCACHE: &str = r#"{"timestamp": 5, "input": "ab", "output": "c", "session_id": "s"}
{"timestamp": 3, "input": "", "output": "d", "session_id": "s"}
"#;
const TAU: &str = r#"[{"task_id": 0, "traj": [{"role": "system", "content": "x"}, {"role": "assistant", "content": "y"}]}]"#;
const SWE: &str = r#"{"trajectory": [{"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]}],
 "history": [{"role": "user"}, {"role": "assistant", "is_demo": true}, {"role": "assistant"}]}"#;
const AGENTX: &str = r#"{"id": "a", "block_size": 4, "requests": [{"t": 0, "type": "s", "in": 9, "out": 1, "hash_ids": [1, 2]}, {"t": 1, "type": "subagent", "requests": [{"t": 0, "type": "n", "in": 4, "out": 5, "hash_ids": [7]}]}]}
"#;
const MOONCAKE: &str = r#"{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [0, 1]}
{"timestamp": 2, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]}
"#;
const BURST: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n";
const AZURE: &str =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n";
const JSONL: &str = r#"{"trace.schema":"1","trace.content":"blocks","trace.block_tokens":4}
{"request_id":0,"arrival_us":0,"session_id":0,"prompt_tokens":9,"output_tokens":1,"prompt_blocks":[1,2]}
"#;
const PULSE: &str = r#"{"timestamp": "1", "input_length": 30, "output_length": 2, "session_id": "s", "hash_ids": {"sys_prompt": [1, 2], "passages_ids": [1], "user_input": [3]}}
"#;

/// Every format with a small input that it takes, and the options that it needs.
fn small_inputs() -> Vec<(
    &'static str,
    &'static str,
    Vec<u8>,
    Vec<(&'static str, &'static str)>,
)> {
    let invent = vec![("identity", "shared:100")];
    let text =
        |format, name, text: &str, options| (format, name, text.as_bytes().to_vec(), options);
    vec![
        text("agentx", "in.jsonl", AGENTX, vec![]),
        text("aiperf", "in.jsonl", AIPERF, vec![]),
        text("azure", "in.csv", AZURE, invent.clone()),
        text("burstgpt", "in.csv", BURST, invent),
        text("claude-code", "in.jsonl", CLAUDE, vec![]),
        text(
            "csv",
            "in.csv",
            TABLE,
            vec![
                ("block-tokens", "4"),
                (
                    "map",
                    "arrival=when,prompt_tokens=in,output_tokens=out,session=who,kind=what,ids=blocks",
                ),
            ],
        ),
        text("jsonl", "in.jsonl", JSONL, vec![]),
        text("lmcache-agent", "in.jsonl", LMCACHE, vec![]),
        text("mooncake", "in.jsonl", MOONCAKE, vec![]),
        text("openai-chat", "in.jsonl", CHAT, vec![]),
        ("oracle-general", "in.bin", records(&OBJECTS), vec![]),
        text("qwen-bailian", "in.jsonl", QWEN, vec![]),
        text("ragpulse", "0_in.jsonl", PULSE, vec![]),
        text("sharegpt", "in.json", SHAREGPT, vec![]),
        text("swe-agent", "in.traj", SWE, vec![]),
        text("tau-bench", "in.json", TAU, vec![]),
    ]
}

/// The tables that a RAGPulse trace needs beside it.
fn pulse_tables(folder: &Folder) {
    let table = |name: &str, id: &str, rows: &[(u64, u32)]| {
        let row = |(number, tokens): &(u64, u32)| {
            format!("{{\"{id}\": {number}, \"token_length\": {tokens}}}\n\n")
        };
        folder.file(name, rows.iter().map(row).collect::<String>());
    };
    table("1_sys_prompt.jsonl", "sys_prompt_id", &[(1, 10), (2, 5)]);
    table("2_passages.jsonl", "passage_id", &[(1, 5)]);
    table("3_history.jsonl", "history_id", &[]);
    table("4_user_input.jsonl", "user_input_id", &[(3, 2)]);
    table("5_web_search.jsonl", "web_search_id", &[]);
}

#[test]
fn every_format_takes_its_small_input() {
    let inputs = small_inputs();
    let names: Vec<_> = inputs.iter().map(|(format, ..)| *format).collect();
    let known: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(names, known);
    for (format, name, bytes, options) in inputs {
        let folder = Folder::new();
        pulse_tables(&folder);
        let input = folder.file(name, bytes);
        let out = folder.path("out.parquet");
        let imported = try_import(format, &input, &out, &options, false).unwrap();
        let loaded = workload(&out, None);
        assert_eq!(
            loaded.requests().len() as u64,
            imported.requests,
            "{format}"
        );
        let said = format!("{}", imported.notes.len());
        assert!(format == "jsonl" || said != "0", "{format} tells nothing");
    }
}

#[test]
fn malformed_rows_are_named_and_nothing_is_written() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("agentx", "\"out\": 1", "\"out\": -1", "line 1"),
        (
            "agentx",
            "\"in\": 9",
            "\"in\": 20",
            "line 1, requests[0]: 2 hash_ids; expected 5",
        ),
        (
            "aiperf",
            "\"hash_ids\": [9]",
            "\"text_input\": \"x\"",
            "line 3: no `hash_ids`",
        ),
        (
            "aiperf",
            "\"delay\": 500",
            "\"delay\": -500",
            "line 2: delay -500 is not a time",
        ),
        ("azure", "4808", "many", "line 2: prompt_tokens `many`"),
        (
            "azure",
            "4808",
            "4294967295",
            "line 2: prompt_tokens 4294967295",
        ),
        (
            "azure",
            "2023-11-16",
            "2023-16-11",
            "line 2: arrival `2023-16-11",
        ),
        (
            "azure",
            "ContextTokens",
            "Tokens",
            "no column `ContextTokens`",
        ),
        ("azure", ",10", "", "line: 2"),
        (
            "burstgpt",
            "5,ChatGPT",
            "-5,ChatGPT",
            "line 2: arrival `-5`",
        ),
        ("claude-code", "10:00:10.000Z", "x", "line 5: timestamp"),
        ("claude-code", ":400", ":-400", "line 11: invalid value"),
        (
            "claude-code",
            ":400",
            ":40000000000",
            "line 11: tokens of the prompt 40000000000",
        ),
        ("csv", "1;2", "1;b", "line 3: id `b`"),
        ("csv", "1;2", "1;2;3;4", "line 3: 4 hash_ids; expected 2"),
        (
            "jsonl",
            "\"prompt_blocks\":[1,2]",
            "\"prompt\":[1,2]",
            "line 2: no `prompt_blocks`",
        ),
        ("jsonl", "[1,2]", "[1]", "1 blocks; expected 2"),
        (
            "jsonl",
            "\"trace.schema\":\"1\"",
            "\"trace.schema\":\"7\"",
            "line 1: trace.schema `7`",
        ),
        (
            "lmcache-agent",
            "\"timestamp\": 3",
            "\"timestamp\": 3.5",
            "line 2: invalid type",
        ),
        (
            "lmcache-agent",
            "\"session_id\": \"s\"}\n{",
            "\"session_id\": \"s\"\n{",
            "line 1: EOF",
        ),
        (
            "mooncake",
            "[0, 2]",
            "[2, 0]",
            "line 2: block id 0 at position 1",
        ),
        (
            "openai-chat",
            "\"timestamp\": 30",
            "\"time\": 30",
            "line 3: no `timestamp`",
        ),
        (
            "openai-chat",
            "\"timestamp\": 30",
            "\"timestamp\": []",
            "line 3: timestamp `[]`",
        ),
        (
            "openai-chat",
            "\"tools\": [{\"name\": \"t\"}], \"messages\"",
            "\"m\"",
            "line 2: no `messages`",
        ),
        (
            "qwen-bailian",
            "\"chat_id\":9",
            "\"chat_id\":7",
            "line 2: chat_id 7 is that",
        ),
        ("qwen-bailian", "[1,2,3]", "[1,2,3,4]", "line 1: 4 hash_ids"),
        (
            "ragpulse",
            "[1, 2]",
            "[1, 9]",
            "line 1: sys_prompt 9 is not in the table",
        ),
        (
            "ragpulse",
            "\"input_length\": 30",
            "\"input_length\": 21",
            "line 1: input_length 21; expected the 22",
        ),
        (
            "ragpulse",
            "\"timestamp\": \"1\"",
            "\"timestamp\": \"-1\"",
            "line 1: timestamp `-1`",
        ),
        (
            "ragpulse",
            "\"user_input\": [3]",
            "\"images\": [3]",
            "line 1: hash_ids has the list `images`",
        ),
        (
            "sharegpt",
            "\"value\": \"3\"",
            "\"value\": 3",
            "[0]: invalid type",
        ),
        (
            "swe-agent",
            "\"history\"",
            "\"story\"",
            "missing field `history`",
        ),
        (
            "tau-bench",
            "\"traj\"",
            "\"path\"",
            "[0]: missing field `traj`",
        ),
        ("tau-bench", "}]}]", "", "EOF while parsing"),
    ];
    for (format, good, bad, expected) in cases {
        let inputs = small_inputs();
        let (_, name, bytes, options) = inputs
            .into_iter()
            .find(|(name, ..)| name == format)
            .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(good), "{format}: {good}");
        let folder = Folder::new();
        pulse_tables(&folder);
        let input = folder.file(name, text.replace(good, bad));
        let before = folder.names();
        let out = folder.path("out.parquet");
        let fault = try_import(format, &input, &out, &options, false).unwrap_err();
        let said = fault.to_string();
        assert!(
            said.contains(expected) && said.contains(name),
            "{format}: expected {expected}; {said}"
        );
        assert_eq!(folder.names(), before);
    }
    let cut = &records(&OBJECTS)[..100];
    let folder = Folder::new();
    let input = folder.file("in.bin", cut);
    let fault = try_import("oracle-general", &input, &folder.path("out"), &[], false).unwrap_err();
    assert!(
        fault.to_string().contains("record 4: cut short: 4 bytes"),
        "{fault}"
    );
    assert_eq!(folder.names(), ["in.bin"]);
}

#[test]
fn inputs_without_a_request_are_refused() {
    for (format, name, _, options) in small_inputs() {
        let folder = Folder::new();
        pulse_tables(&folder);
        let input = folder.file(name, "");
        let before = folder.names();
        let out = folder.path("out.parquet");
        try_import(format, &input, &out, &options, false).unwrap_err();
        try_import(format, &folder.path("none"), &out, &options, false).unwrap_err();
        assert_eq!(folder.names(), before);
    }
}

/// Real rows, where there are any, unpacked.
fn real_inputs() -> Vec<(
    &'static str,
    &'static str,
    Vec<u8>,
    Vec<(&'static str, &'static str)>,
)> {
    let invent = vec![("identity", "unique")];
    let files = [
        (
            "mooncake",
            "in.jsonl",
            "mooncake/conversation_trace.jsonl",
            vec![],
        ),
        (
            "azure",
            "in.csv",
            "azure-llm-2023/AzureLLMInferenceTrace_code.csv",
            invent,
        ),
        (
            "lmcache-agent",
            "in.jsonl",
            "lmcache-agent-trace/miniswe/189f0222310bd8eee310f204e91b9c84.jsonl.zst",
            vec![],
        ),
        (
            "swe-agent",
            "in.traj",
            "swe-agent/function_calling_simple.traj",
            vec![],
        ),
    ];
    let read = |(format, name, path, options): (&'static str, &'static str, &str, _)| {
        let bytes = std::fs::read(shared(path)?).unwrap();
        let mut bytes = match path.ends_with(".zst") {
            true => zstd::decode_all(&bytes[..]).unwrap(),
            false => bytes,
        };
        if format != "swe-agent" {
            bytes.truncate(20_000);
        }
        Some((format, name, bytes, options))
    };
    files.into_iter().filter_map(read).collect()
}

/// What a mutation puts into an input.
const SPLICES: &[&str] = &[
    "-1",
    "0",
    "1e400",
    "null",
    "18446744073709551615",
    "4294967295",
    "\n",
    "\"",
    "{}",
    "[]",
    "[[",
    "\u{0}",
    "\\ud800",
    "9e15",
    "true",
    ",",
    "\r\n",
    "x",
];

#[derive(Clone, Debug)]
enum Mutation {
    Flip(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize),
    Splice(usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(place, byte)| Mutation::Flip(place, byte)),
        (at(), 0..40_usize).prop_map(|(place, length)| Mutation::Cut(place, length)),
        (at(), 0..200_usize).prop_map(|(place, length)| Mutation::Repeat(place, length)),
        (at(), 0..SPLICES.len()).prop_map(|(place, which)| Mutation::Splice(place, which)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let range = |place: usize, wanted: usize| place % length..(place % length + wanted).min(length);
    match *mutation {
        Mutation::Flip(place, byte) => bytes[place % length] = byte,
        Mutation::Cut(place, wanted) => drop(bytes.drain(range(place, wanted))),
        Mutation::Repeat(place, wanted) => {
            let again = bytes[range(place, wanted)].to_vec();
            let place = place % length;
            bytes.splice(place..place, again);
        }
        Mutation::Splice(place, which) => {
            // In place of a number or a name, if there is one.
            let place = place % length;
            let rest = &bytes[place..];
            let word = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            bytes.splice(place..place + word, SPLICES[which].bytes());
        }
    }
}

/// A damaged input gives a trace that loads, or an error and nothing.
fn check_damaged(inputs: &[(&str, &str, Vec<u8>, Vec<(&str, &str)>)], mutations: &[Mutation]) {
    for (format, name, bytes, options) in inputs {
        let mut bytes = bytes.clone();
        mutations
            .iter()
            .for_each(|mutation| mutate(&mut bytes, mutation));
        let folder = Folder::new();
        pulse_tables(&folder);
        let input = folder.file(name, &bytes);
        let before = folder.names();
        let out = folder.path("out.parquet");
        match try_import(format, &input, &out, options, false) {
            Ok(imported) => {
                let loaded = workload(&out, None);
                assert_eq!(loaded.requests().len() as u64, imported.requests);
            }
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                assert_eq!(folder.names(), before, "{format}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_inputs_give_traces_that_load_or_nothing(
        mutations in proptest::collection::vec(mutation(), 1..4)
    ) {
        check_damaged(&small_inputs(), &mutations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damaged_real_rows_give_traces_that_load_or_nothing(
        mutations in proptest::collection::vec(mutation(), 0..3)
    ) {
        check_damaged(&real_inputs(), &mutations);
    }
}
