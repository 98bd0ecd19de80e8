//! What a small input of every format becomes.

use std::path::Path;

use crate::inputs::{AIPERF, CHAT, CLAUDE, QWEN, SHAREGPT, TABLE, TABLE_MAP};
use crate::{Folder, arrivals_ms, column, import, imported, try_import, workload};

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

#[test]
fn qwen_chats_are_sessions_and_their_ids_chained_where_needed() {
    let (given, prefix) = imported("qwen-bailian", "in.jsonl", QWEN, &[]);
    assert!(given.starts_with("3 requests, 2 sessions"), "{given}");
    assert!(
        given.contains("kept     1 requests continue a chat"),
        "{given}"
    );
    assert!(!given.contains("chained"), "{given}");
    assert_eq!(arrivals_ms(&prefix), [500, 2_000, 2_000]);
    assert_eq!(column(&prefix, |request| request.session_id), [0, 0, 1]);
    assert_eq!(column(&prefix, |request| request.step), [0, 1, 1]);
    let parents = column(&prefix, |request| request.parent_request);
    assert_eq!(parents, [None, Some(0), None]);
    assert_eq!(column(&prefix, |request| request.seen_blocks), [0, 2, 1]);
    assert_eq!(column(&prefix, |request| request.path_blocks), [2, 4, 1]);

    let content = QWEN.replace("[1,2,4,5]", "[1,2,4,2]");
    let (given, chained) = imported("qwen-bailian", "in.jsonl", &content, &[]);
    assert!(
        given.contains("changed  ids taken as names of content"),
        "{given}"
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

#[test]
fn aiperf_sessions_wait_for_the_answer_and_their_delay() {
    let (given, workload) = imported("aiperf", "in.jsonl", AIPERF, &[]);
    assert!(given.starts_with("4 requests, 2 sessions"), "{given}");
    // 10 tokens at 20 ms and a delay of 500 ms; then 20 tokens and 100 ms.
    assert_eq!(arrivals_ms(&workload), [1_000, 1_100, 1_700, 2_200]);
    let parents = column(&workload, |request| request.parent_request);
    assert_eq!(parents, [None, None, Some(0), Some(2)]);
    assert_eq!(
        column(&workload, |request| request.path_blocks),
        [2, 1, 2, 3]
    );
}

#[test]
fn aiperf_rows_that_hold_what_is_new_build_up_their_sessions() {
    let text = r#"{"session_id": "a", "timestamp": 0, "input_length": 6, "output_length": 3, "hash_ids": [1, 2]}
{"session_id": "a", "input_length": 5, "output_length": 1, "hash_ids": [3, 4]}
{"session_id": "b", "timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [1]}
{"session_id": "b", "input_length": 6, "output_length": 1, "hash_ids": [3, 2]}
"#;
    let folder = Folder::new();
    let input = folder.file("in.jsonl", text);
    let out = folder.path("out.parquet");
    let given = import("aiperf", &input, &out, &[("block-tokens", "4")]);
    assert!(given.contains("rows hold what is new"), "{given}");
    let tokens = workload(&out, Some(1));
    assert_eq!(arrivals_ms(&tokens), [0, 1, 21, 60]);
    let lengths = column(&tokens, |request| request.prompt_tokens);
    // Those of `a` are 6, and then 6 + 3 + 5; those of `b` 4, and then 4 + 1 + 6.
    assert_eq!(lengths, [6, 4, 11, 14]);
    // `b` shares the block 1; the answers keep the sessions apart from there on. The last token of an answer is not
    // cached.
    assert_eq!(column(&tokens, |request| request.seen_blocks), [0, 4, 4, 8]);
    let whole = [("block-tokens", "4"), ("context", "whole")];
    let given = import("aiperf", &input, &out, &whole);
    assert!(!given.contains("rows hold what is new"), "{given}");
}

#[test]
fn chat_requests_become_tokens() {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", CHAT);
    let out = folder.path("out.parquet");
    let given = import("openai-chat", &input, &out, &[]);
    assert!(given.starts_with("3 requests, 2 sessions"), "{given}");
    assert!(
        given.contains("changed  1 rows were out of order"),
        "{given}"
    );
    assert!(given.contains("1 requests were logged without"), "{given}");
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
    let (given, workload) = imported("openai-chat", "in.jsonl", &text, &gap);
    assert!(given.contains("requests arrive 2 s apart"), "{given}");
    assert_eq!(arrivals_ms(&workload), [0, 2_000, 4_000]);
    let dated = CHAT.replace("20.5", "\"1970-01-01T00:00:01Z\"");
    let dated = dated.replace(": 20,", ": \"1970-01-01T00:00:00Z\",");
    let dated = dated.replace(": 30,", ": \"1970-01-01 00:01:00.25\",");
    let (_, workload) = imported("openai-chat", "in.jsonl", &dated, &[("time-unit", "date")]);
    assert_eq!(arrivals_ms(&workload), [0, 1_000, 60_250]);
}

#[test]
fn sharegpt_conversations_run_so_many_at_a_time() {
    let one = [("at-once", "1")];
    let (given, workload) = imported("sharegpt", "in.json", SHAREGPT, &one);
    assert!(given.starts_with("3 requests, 2 sessions"), "{given}");
    assert!(
        given.contains("dropped  1 conversations without an answer"),
        "{given}"
    );
    assert!(given.contains("kept     1 prompts are empty"), "{given}");
    assert_eq!(arrivals_ms(&workload), [0, 1_000, 2_000]);
    let line = r#"{"role":"user","content":"1"}"#.len() as u32 + 1;
    let answer = r#"{"role":"assistant","content":"2"}"#.len() as u32 + 1;
    let lengths = column(&workload, |request| request.prompt_tokens);
    assert_eq!(lengths, [line, 2 * line + answer, 0]);
    let (_, together) = imported("sharegpt", "in.json", SHAREGPT, &[]);
    assert_eq!(arrivals_ms(&together)[0], 0);
    assert_eq!(arrivals_ms(&together).len(), 3);
}

#[test]
fn claude_code_logs_are_checked_against_the_provider() {
    let (given, workload) = imported("claude-code", "log.jsonl", CLAUDE, &[]);
    assert!(given.starts_with("4 requests, 2 sessions"), "{given}");
    // 15 blocks of 64 of the first prompt, and 6 of it for the shortened one.
    assert!(
        given.contains("of 3100 prompt tokens the provider read 1000 from its cache (0.3226)")
            && given.contains("had 1344 (0.4335)"),
        "{given}"
    );
    assert!(given.contains("kept     1 prompts are shorter"), "{given}");
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
    let given = import("claude-code", &folder.path(""), &out, &[]);
    assert!(given.starts_with("4 requests, 2 sessions"), "{given}");
}

#[test]
fn columns_of_a_table_have_the_roles_they_are_given() {
    let map = format!("{TABLE_MAP},ids=blocks");
    let options = [("map", &*map), ("block-tokens", "4")];
    let (given, workload) = imported("csv", "in.csv", TABLE, &options);
    assert!(given.starts_with("3 requests, 2 sessions"), "{given}");
    assert!(
        given.contains("changed  1 rows were out of order"),
        "{given}"
    );
    assert!(
        given.contains("1 requests end in a partial last block"),
        "{given}"
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
    let (given, workload) = imported("burstgpt", "in.csv", text, &identity);
    assert!(given.contains("prompts are invented (unique)"), "{given}");
    assert!(
        given.contains("kept     1 outputs have no tokens"),
        "{given}"
    );
    assert_eq!(arrivals_ms(&workload), [0, 40_000]);
    assert_eq!(workload.kinds(), ["", "Conversation log", "API log"]);
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

#[test]
fn repeated_rows_and_prompts_are_kept_and_told() {
    let chat = |time: u32, session: &str| {
        format!(
            "{{\"timestamp\": {time}, \"input\": \"ab\", \"output\": \"c\", \"session_id\": \"{session}\"}}\n"
        )
    };
    let text = [chat(1, "s"), chat(2, "s"), chat(2, "t"), chat(3, "s")].concat();
    let (given, _) = imported("lmcache-agent", "in.jsonl", &text, &[]);
    assert!(given.starts_with("4 requests, 2 sessions"), "{given}");
    assert!(
        given.contains("kept     1 rows repeat an earlier one"),
        "{given}"
    );
    assert!(
        given.contains("kept     2 prompts repeat an earlier prompt"),
        "{given}"
    );
}

#[test]
fn swe_agent_prompts_are_what_was_sent_where_that_is_recorded() {
    let history = r#"[{"role": "user", "content": "a"}, {"role": "assistant", "content": "demo", "is_demo": true},
        {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]"#;
    let prompt_tokens = |trajectory: &str| {
        let text = format!("{{\"trajectory\": {trajectory}, \"history\": {history}}}");
        let (_, workload) = imported("swe-agent", "in.traj", &text, &[]);
        column(&workload, |request| request.prompt_tokens)
    };
    let line = r#"{"role":"user","content":"a"}"#.len() as u32 + 1;
    let demo = r#"{"role":"assistant","content":"demo","is_demo":true}"#.len() as u32 + 1;
    assert_eq!(prompt_tokens("[]"), [2 * line + demo]);
    let messages = r#"[{"messages": [{"role": "user", "content": "a"}, {"role": "assistant"}, {"role": "tool"}]}]"#;
    assert_eq!(prompt_tokens(messages), [line]);
    let query = r#"[{"query": [{"role": "user", "content": "a"}], "response": "c"}]"#;
    assert_eq!(prompt_tokens(query), [line]);
}
