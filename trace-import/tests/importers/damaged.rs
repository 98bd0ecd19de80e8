//! Damaged inputs: an error that names the location, or a trace that loads; nothing half-written.

use std::io::Read;

use proptest::prelude::*;
use trace_import::import::FORMATS;

use crate::inputs::{Input, OBJECTS, pulse_tables, records, small_inputs};
use crate::{Folder, shared, try_import, workload};

#[test]
fn every_format_takes_its_small_input() {
    let inputs = small_inputs();
    let names: Vec<_> = inputs.iter().map(|input| input.format).collect();
    let known: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(names, known);
    for Input {
        format,
        name,
        bytes,
        options,
    } in inputs
    {
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
    }
}

/// Format, what stands in its small input, what is put there instead, and what the error says of it.
const MALFORMED: &str = r#"
agentx | "out": 1 | "out": -1 | line 1
agentx | "in": 9 | "in": 20 | line 1, requests[0]: 2 hash_ids; expected 5
aiperf | "hash_ids": [9] | "text_input": "x" | line 3: no `hash_ids`
aiperf | "delay": 500 | "delay": -500 | line 2: delay -500 is not a time
azure | 4808 | many | line 2: prompt_tokens `many`
azure | 4808 | 4294967295 | line 2: prompt_tokens 4294967295
azure | 2023-11-16 | 2023-16-11 | line 2: arrival `2023-16-11
azure | ContextTokens | Tokens | no column `ContextTokens`
azure | ,10 |  | line: 2
burstgpt | 5,ChatGPT | -5,ChatGPT | line 2: arrival `-5`
claude-code | 10:00:10.000Z | x | line 5: timestamp
claude-code | :400 | :-400 | line 11: invalid value
claude-code | :400 | :40000000000 | line 11: tokens of the prompt 40000000000
csv | 1;2 | 1;b | line 3: id `b`
csv | 1;2 | 1;2;3;4 | line 3: 4 hash_ids; expected 2
jsonl | "prompt_blocks":[1,2] | "prompt":[1,2] | line 2: column `prompt_blocks`: a row of the other content
jsonl | [1,2] | [1] | 1 blocks; expected 2
jsonl | "trace.schema":"1" | "trace.schema":"7" | line 1: trace.schema is `7`
lmcache-agent | "timestamp": 3 | "timestamp": 3.5 | line 2: invalid type
lmcache-agent | "session_id": "s"}\n{ | "session_id": "s"\n{ | line 1: EOF
mooncake | [0, 2] | [2, 0] | line 2: block id 0 at position 1
openai-chat | "timestamp": 30 | "time": 30 | line 3: no `timestamp`
openai-chat | "timestamp": 30 | "timestamp": [] | line 3: timestamp `[]`
openai-chat | "tools": [{"name": "t"}], "messages" | "m" | line 2: no `messages`
qwen-bailian | "chat_id":9 | "chat_id":7 | line 2: chat_id 7 is that
qwen-bailian | [1,2,3] | [1,2,3,4] | line 1: 4 hash_ids
ragpulse | [1, 2] | [1, 9] | line 1: sys_prompt 9 is not in the table
ragpulse | "input_length": 30 | "input_length": 21 | line 1: input_length 21; expected the 22
ragpulse | "timestamp": "1" | "timestamp": "-1" | line 1: timestamp `-1`
ragpulse | "user_input": [3] | "images": [3] | line 1: hash_ids has the list `images`
sharegpt | "value": "3" | "value": 3 | [0]: invalid type
swe-agent | "history" | "story" | missing field `history`
tau-bench | "traj" | "path" | [0]: missing field `traj`
tau-bench | }]}] |  | EOF while parsing
"#;

#[test]
fn malformed_rows_are_named_and_nothing_is_written() {
    for case in MALFORMED.lines().filter(|line| !line.is_empty()) {
        let fields: Vec<_> = case.split(" | ").collect();
        let [format, good, bad, expected] = fields[..] else {
            panic!("not a case: {case}");
        };
        let inputs = small_inputs();
        let found = inputs.into_iter().find(|input| input.format == format);
        let input = found.unwrap();
        let text = String::from_utf8(input.bytes).unwrap();
        let (good, bad) = (good.replace("\\n", "\n"), bad.replace("\\n", "\n"));
        assert!(text.contains(&good), "{case}");
        let folder = Folder::new();
        pulse_tables(&folder);
        let file = folder.file(input.name, text.replace(&good, &bad));
        let before = folder.names();
        let out = folder.path("out.parquet");
        let fault = try_import(format, &file, &out, &input.options, false).unwrap_err();
        let given = fault.to_string();
        assert!(
            given.contains(expected) && given.contains(input.name),
            "{case}: {given}"
        );
        assert_eq!(folder.names(), before);
    }
}

#[test]
fn a_record_cut_short_is_named() {
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
    for Input {
        format,
        name,
        options,
        ..
    } in small_inputs()
    {
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
fn real_inputs() -> Vec<Input> {
    let miniswe = "lmcache-agent-trace/miniswe/189f0222310bd8eee310f204e91b9c84.jsonl.zst";
    let azure = "azure-llm-2023/AzureLLMInferenceTrace_code.csv";
    let swe_agent = "swe-agent/function_calling_simple.traj";
    let invent = vec![("identity", "unique")];
    [
        real_input(
            "mooncake",
            "in.jsonl",
            "mooncake/conversation_trace.jsonl",
            vec![],
        ),
        real_input("azure", "in.csv", azure, invent),
        real_input("lmcache-agent", "in.jsonl", miniswe, vec![]),
        real_input("swe-agent", "in.traj", swe_agent, vec![]),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A real file, or the first of its lines.
fn real_input(
    format: &'static str,
    name: &'static str,
    path: &str,
    options: Vec<(&'static str, &'static str)>,
) -> Option<Input> {
    let bytes = std::fs::read(shared(path)?).unwrap();
    let mut bytes = match path.ends_with(".zst") {
        true => zstd::decode_all(&bytes[..]).unwrap(),
        false => bytes,
    };
    let head = &bytes[..bytes.len().min(60_000)];
    let lines = head.iter().rposition(|&byte| byte == b'\n');
    bytes.truncate(lines.map_or(bytes.len(), |end| end + 1));
    Some(Input {
        format,
        name,
        bytes,
        options,
    })
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
        (at(), any::<u8>()).prop_map(|(location, byte)| Mutation::Flip(location, byte)),
        (at(), 0..40_usize).prop_map(|(location, length)| Mutation::Cut(location, length)),
        (at(), 0..200_usize).prop_map(|(location, length)| Mutation::Repeat(location, length)),
        (at(), 0..SPLICES.len()).prop_map(|(location, which)| Mutation::Splice(location, which)),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    let length = bytes.len();
    let range = |location: usize, wanted: usize| {
        location % length..(location % length + wanted).min(length)
    };
    match *mutation {
        Mutation::Flip(location, byte) => bytes[location % length] = byte,
        Mutation::Cut(location, wanted) => drop(bytes.drain(range(location, wanted))),
        Mutation::Repeat(location, wanted) => {
            let again = bytes[range(location, wanted)].to_vec();
            let location = location % length;
            bytes.splice(location..location, again);
        }
        Mutation::Splice(location, which) => {
            // In location of a number or a name, if there is one.
            let location = location % length;
            let rest = &bytes[location..];
            let word = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            bytes.splice(location..location + word, SPLICES[which].bytes());
        }
    }
}

/// A damaged input gives a trace that loads, or an error and nothing.
fn check_damaged(inputs: Vec<Input>, mutations: &[Mutation]) {
    for Input {
        format,
        name,
        mut bytes,
        options,
    } in inputs
    {
        mutations
            .iter()
            .for_each(|mutation| mutate(&mut bytes, mutation));
        let folder = Folder::new();
        pulse_tables(&folder);
        let input = folder.file(name, &bytes);
        let before = folder.names();
        let out = folder.path("out.parquet");
        match try_import(format, &input, &out, &options, false) {
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

/// A line that stands there twice gives two requests of one id: a trace that would not load.
#[test]
fn an_id_twice_is_refused() {
    let inputs = small_inputs();
    let jsonl = inputs.iter().find(|input| input.format == "jsonl").unwrap();
    let text = String::from_utf8(jsonl.bytes.clone()).unwrap();
    let last = text.lines().last().unwrap();
    let folder = Folder::new();
    let input = folder.file(jsonl.name, format!("{}\n{last}\n", text.trim_end()));
    let out = folder.path("out.parquet");
    let refused = try_import("jsonl", &input, &out, &[], false).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("line 3"), "{refused}");
    assert!(refused.contains("0, which an earlier row has"), "{refused}");
    assert!(!out.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_inputs_give_traces_that_load_or_nothing(
        mutations in proptest::collection::vec(mutation(), 1..4)
    ) {
        check_damaged(small_inputs(), &mutations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn damaged_real_rows_give_traces_that_load_or_nothing(
        mutations in proptest::collection::vec(mutation(), 0..3)
    ) {
        check_damaged(real_inputs(), &mutations);
    }
}

/// A row that is refused says nothing about the rows after it.
#[test]
fn one_bad_row_is_one_rejected_row() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let head = r#"{"trace.schema":"1","trace.content":"blocks","trace.block_tokens":1}"#;
    let row = |id: u64, at: i64, blocks: &str| {
        let tokens = blocks.split(',').count();
        format!(
            r#"{{"request_id":{id},"arrival_us":{at},"session_id":0,"prompt_tokens":{tokens},"output_tokens":0,"prompt_blocks":[{blocks}]}}"#
        )
    };
    let bad_rows = [
        // Block 3 after 9; a row whose arrival is the latest of all; an id twice.
        row(1, 1, "1,2,9,3"),
        row(0, i64::MAX, "1,2,3"),
        row(1, 1 << 53, "1,2").replace("\"prompt_tokens\":2", "\"prompt_tokens\":9"),
        row(0, 1, "1,2,3"),
    ];
    for bad in bad_rows {
        let good = (2..12).map(|id| row(id, id as i64, "1,2,3") + "\n");
        let text = format!(
            "{head}\n{}\n{bad}\n{}",
            row(0, 0, "1,2,3"),
            good.collect::<String>()
        );
        let input = folder.file("in.jsonl", text);
        let fault = try_import("jsonl", &input, &out, &[], false).unwrap_err();
        assert!(fault.to_string().starts_with("1 row rejected"), "{fault}");
    }
}

/// Small inputs that ask for much are refused before they get it.
#[test]
fn bombs_are_refused() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let one_line = zstd::encode_all(std::io::repeat(b'a').take(1 << 28), 3).unwrap();
    let input = folder.file("in.jsonl.zst", one_line);
    let fault = try_import("mooncake", &input, &out, &[], false).unwrap_err();
    let fault = fault.to_string();
    assert!(
        fault.contains("1000 times its size") || fault.contains("MB"),
        "{fault}"
    );
    if let Some(folder) = shared("../cases/edge/ragpulse-17GB") {
        let fault = try_import("ragpulse", &folder, &out, &[], false).unwrap_err();
        assert!(
            fault.to_string().contains("input_length 4278190080"),
            "{fault}"
        );
    }
}

#[test]
fn a_byte_order_mark_is_skipped_and_gzip_is_named() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let line = r#"{"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1]}"#;
    let input = folder.file("in.jsonl", format!("\u{feff}{line}\n"));
    assert_eq!(
        try_import("mooncake", &input, &out, &[], false)
            .unwrap()
            .requests,
        1
    );
    let input = folder.file("in.jsonl.gz", [0x1f, 0x8b]);
    let fault = try_import("mooncake", &input, &out, &[], false).unwrap_err();
    assert!(fault.to_string().contains("packed as .gz"), "{fault}");
}
