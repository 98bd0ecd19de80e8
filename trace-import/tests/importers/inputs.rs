//! A small input of every format.

use crate::Folder;

pub(crate) const QWEN: &str = r#"{"chat_id":7,"parent_chat_id":-1,"timestamp":0.5,"input_length":40,"output_length":9,"type":"text","turn":1,"hash_ids":[1,2,3]}
{"chat_id":9,"parent_chat_id":7,"timestamp":2,"input_length":64,"output_length":1,"type":"text","turn":2,"hash_ids":[1,2,4,5]}
{"chat_id":10,"parent_chat_id":3,"timestamp":2,"input_length":16,"output_length":1,"type":"search","turn":2,"hash_ids":[1]}
"#;

pub(crate) const AIPERF: &str = r#"{"session_id": "a", "timestamp": 1000, "input_length": 1024, "output_length": 10, "hash_ids": [1, 2]}
{"session_id": "a", "delay": 500, "input_length": 1030, "output_length": 20, "hash_ids": [1, 2, 3]}
{"timestamp": 1100, "input_length": 512, "output_length": 1, "hash_ids": [9]}
{"session_id": "a", "delay": 100, "input_length": 1536, "output_length": 1, "hash_ids": [1, 2, 4]}
"#;

pub(crate) const CHAT: &str = r#"{"timestamp": 20.5, "session_id": "s", "model": "m", "messages": [{"role": "user", "content": "hello"}], "choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": [{"function": {"name": "search"}}]}}]}
{"custom_id": "x", "timestamp": 20, "body": {"tools": [{"name": "t"}], "messages": [{"role": "user", "content": "hello"}]}}
{"timestamp": 30, "session_id": "s", "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}], "output": "done"}
"#;

pub(crate) const SHAREGPT: &str = r#"[{"id": "a", "conversations": [{"from": "human", "value": "1"}, {"from": "gpt", "value": "2"},
 {"from": "human", "value": "3"}, {"from": "gpt", "value": "4"}]},
 {"id": "b", "conversations": [{"from": "human", "value": "1"}]},
 {"id": "c", "conversations": [{"from": "gpt", "value": "2"}]}]"#;

pub(crate) const CLAUDE: &str = r#"{"type":"summary","summary":"x","leafUuid":"z"}
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

pub(crate) const TABLE: &str = "when,in,out,who,blocks,what\n\
    1.5,9,2,ann,1 2 3,chat\n\
    2,8,0,bob,1;2,chat\n\
    1.5,4,1,ann,\"[1]\",\n";
pub(crate) const TABLE_MAP: &str =
    "arrival=when,prompt_tokens=in,output_tokens=out,session=who,kind=what";

pub(crate) fn records(rows: &[(u32, u64, u32, i64)]) -> Vec<u8> {
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
pub(crate) const OBJECTS: [(u32, u64, u32, i64); 5] = [
    (0, 0, 16, 3),
    (1, 1, 16, 5),
    (1, 0, 16, -1),
    (2, 2, 16, -1),
    (9, 1, 16, -1),
];

pub(crate) const LMCACHE: &str = r#"{"timestamp": 5, "input": "ab", "output": "c", "session_id": "s"}
{"timestamp": 3, "input": "", "output": "d", "session_id": "s"}
"#;
pub(crate) const TAU: &str = r#"[{"task_id": 0, "traj": [{"role": "system", "content": "x"}, {"role": "assistant", "content": "y"}]}]"#;
pub(crate) const SWE: &str = r#"{"trajectory": [{"messages": [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}]}],
 "history": [{"role": "user"}, {"role": "assistant", "is_demo": true}, {"role": "assistant"}]}"#;
pub(crate) const AGENTX: &str = r#"{"id": "a", "block_size": 4, "requests": [{"t": 0, "type": "s", "in": 9, "out": 1, "hash_ids": [1, 2]}, {"t": 1, "type": "subagent", "requests": [{"t": 0, "type": "n", "in": 4, "out": 5, "hash_ids": [7]}]}]}
"#;
pub(crate) const MOONCAKE: &str = r#"{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [0, 1]}
{"timestamp": 2, "input_length": 1024, "output_length": 1, "hash_ids": [0, 2]}
"#;
pub(crate) const BURST: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n";
pub(crate) const AZURE: &str =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n";
pub(crate) const JSONL: &str = r#"{"trace.schema":"1","trace.content":"blocks","trace.block_tokens":4}
{"request_id":0,"arrival_us":0,"session_id":0,"prompt_tokens":9,"output_tokens":1,"prompt_blocks":[1,2]}
"#;
pub(crate) const PULSE: &str = r#"{"timestamp": "1", "input_length": 30, "output_length": 2, "session_id": "s", "hash_ids": {"sys_prompt": [1, 2], "passages_ids": [1], "user_input": [3]}}
"#;

/// An input, and how to import it.
pub(crate) struct Input {
    pub(crate) format: &'static str,
    pub(crate) name: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) options: Vec<(&'static str, &'static str)>,
}

/// Every format with a small input that it takes, and the options that it needs.
pub(crate) fn small_inputs() -> Vec<Input> {
    let invent = vec![("identity", "shared:100")];
    let text = |format, name, text: &str, options| Input {
        format,
        name,
        bytes: text.as_bytes().to_vec(),
        options,
    };
    let map = "arrival=when,prompt_tokens=in,output_tokens=out,session=who,kind=what,ids=blocks";
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
            vec![("block-tokens", "4"), ("map", map)],
        ),
        text("jsonl", "in.jsonl", JSONL, vec![]),
        text("lmcache-agent", "in.jsonl", LMCACHE, vec![]),
        text("mooncake", "in.jsonl", MOONCAKE, vec![]),
        text("openai-chat", "in.jsonl", CHAT, vec![]),
        Input {
            bytes: records(&OBJECTS),
            ..text("oracle-general", "in.bin", "", vec![])
        },
        text("qwen-bailian", "in.jsonl", QWEN, vec![]),
        text("ragpulse", "0_in.jsonl", PULSE, vec![]),
        text("sharegpt", "in.json", SHAREGPT, vec![]),
        text("swe-agent", "in.traj", SWE, vec![]),
        text("tau-bench", "in.json", TAU, vec![]),
    ]
}

/// The tables that a RAGPulse trace needs beside it.
pub(crate) fn pulse_tables(folder: &Folder) {
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
