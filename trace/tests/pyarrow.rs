//! Trace files and pyarrow: what it writes we load, what we write it reads.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;

use trace::{
    BlockId, Body, Content, Hints, LoadOptions, Meta, RequestResult, ResultWriter, Row,
    TraceWriter, load,
};

/// Runs a script; `None`, with a word, where there is no python3 with pyarrow.
fn python(script: &str, file: &Path) -> Option<String> {
    let found = Command::new("python3")
        .args(["-c", "import pyarrow.parquet"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no python3 with pyarrow");
        return None;
    }
    let output = Command::new("python3")
        .args(["-c", script])
        .arg(file)
        .output()
        .unwrap();
    let fault = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{fault}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_file_written_by_pyarrow_loads() {
    const SCRIPT: &str = r#"
import sys, pyarrow as pa, pyarrow.parquet as pq
kinds = pa.array(["goal", "step", None]).dictionary_encode()
table = pa.table({
    "request_id": [1, 2, 3],
    "arrival_us": [0, 10, 20],
    "session_id": [5, 5, 6],
    "prompt_tokens": [8, 12, 1],
    "output_tokens": [1, 5, 1],
    "prompt_blocks": pa.array([[2**63, 1], [2**63, 1, 2], []], pa.large_list(pa.uint64())),
    "output_blocks": [[], [3], None],
    "kind": kinds,
    "tool": pa.array(["search", None, None], pa.string_view()),
    "extra": [1.5, 2.5, 3.5],
})
table = table.replace_schema_metadata({"trace.block_tokens": "4", "trace.content": "blocks", "trace.name": "by hand"})
pq.write_table(table, sys.argv[1], compression="snappy")
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hand.parquet");
    if python(SCRIPT, &path).is_none() {
        return;
    }
    let workload = load(&path, &LoadOptions::default()).unwrap().workload;
    assert_eq!(workload.provenance().name.as_deref(), Some("by hand"));
    let requests = workload.requests();
    let kinds = requests
        .iter()
        .map(|request| &*workload.kinds()[usize::from(request.kind)]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["goal", "step", ""]);
    assert_eq!(workload.path(&requests[1]), [0, 1, 2, 3].map(BlockId));
    assert_eq!(requests[1].prompt_blocks, 3);
    assert_eq!(requests[0].tool, Some(0));
}

#[test]
fn pyarrow_reads_what_we_write() {
    const SCRIPT: &str = r#"
import sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
for field in table.schema:
    print(field.name, field.type, "nullable" if field.nullable else "")
print(sorted((key.decode(), value.decode()) for key, value in table.schema.metadata.items() if key.startswith(b"trace.")))
print(sorted(key.decode() for key in pq.read_metadata(sys.argv[1]).metadata if key.startswith(b"trace.")))
print(table.to_pylist())
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.parquet");
    let meta = Meta::new(Content::Blocks { block_tokens: 4 });
    let mut writer = TraceWriter::create(&path, &meta).unwrap();
    let row = Row {
        request_id: 1,
        prompt_tokens: 9,
        output_tokens: 4,
        kind: Cow::Borrowed("goal"),
        body: Body::Blocks {
            prompt: Cow::Owned(vec![u64::MAX, 1]),
            output: Some(Cow::Owned(vec![2])),
        },
        hints: Hints {
            priority: Some(3),
            ..Hints::default()
        },
        ..Row::default()
    };
    writer.write(&row).unwrap();
    writer.finish().unwrap();
    let Some(output) = python(SCRIPT, &path) else {
        return;
    };
    let expected = "\
request_id uint64 
arrival_us int64 
session_id uint64 
step uint32 
parent_request uint64 nullable
kind dictionary<values=string, indices=int32, ordered=0> 
tenant uint32 
tool dictionary<values=string, indices=int32, ordered=0> nullable
prompt_tokens uint32 
output_tokens uint32 
prompt_blocks list<element: uint64 not null> 
output_blocks list<element: uint64 not null> nullable
priority uint32 nullable
priority_ttl_us uint64 nullable
template_id uint64 nullable
template_tokens uint32 nullable
remaining_uses uint32 nullable
steps_to_next uint32 nullable
[('trace.block_tokens', '4'), ('trace.content', 'blocks'), ('trace.schema', '1')]
['trace.block_tokens', 'trace.content', 'trace.schema']
[{'request_id': 1, 'arrival_us': 0, 'session_id': 0, 'step': 0, 'parent_request': None, 'kind': 'goal', \
'tenant': 0, 'tool': None, 'prompt_tokens': 9, 'output_tokens': 4, \
'prompt_blocks': [18446744073709551615, 1], 'output_blocks': [2], 'priority': 3, 'priority_ttl_us': None, \
'template_id': None, 'template_tokens': None, 'remaining_uses': None, 'steps_to_next': None}]
";
    assert_eq!(output, expected);
}

#[test]
fn pyarrow_reads_the_result_table() {
    const SCRIPT: &str = "
import sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
print([str(field.type) for field in table.schema], table.to_pylist())";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.parquet");
    let mut writer = ResultWriter::create(&path).unwrap();
    let result = RequestResult {
        request_id: 7,
        hit_tokens: 16,
        recovered_seconds: 0.5,
        ttft_seconds: 0.25,
    };
    writer.write(&result).unwrap();
    assert!(!path.exists());
    writer.finish().unwrap();
    let Some(output) = python(SCRIPT, &path) else {
        return;
    };
    let expected = "['uint64', 'uint32', 'double', 'double'] [{'request_id': 7, 'hit_tokens': 16, \
                    'recovered_seconds': 0.5, 'ttft_seconds': 0.25}]\n";
    assert_eq!(output, expected);
}
