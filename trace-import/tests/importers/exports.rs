//! What is exported can be imported again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use trace::{Content, Workload};
use trace_gen::GeneratorContext;
use trace_gen::families::find;
use trace_import::export::{EXPORT_FORMATS, Export};
use trace_import::inspect::inspect;

use crate::inputs::{OBJECTS, records};
use crate::{Folder, column, import, workload};

fn export(format: &str, trace: &Path, out: &Path, block_tokens: Option<u32>) {
    let format = EXPORT_FORMATS
        .iter()
        .find(|known| known.name == format)
        .unwrap();
    let export = Export {
        format,
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
    let given = import("oracle-general", &input, &trace, &[]);
    assert!(given.starts_with("5 requests"), "{given}");
    let summary = inspect(&trace, None).unwrap();
    // A hit is a whole object: two of five accesses.
    assert_eq!(summary.infinite_cache_hit_tokens, 2 * 16);
    export("oracle-general", &trace, &out, None);
    assert_eq!(std::fs::read(&out).unwrap(), records(&OBJECTS));
}

/// A generated trace with hints, outputs and sessions, in blocks or in tokens.
fn generated(folder: &Folder, tokens: bool) -> PathBuf {
    let path = folder.path("generated.parquet");
    let family = find("chat").unwrap();
    let mut params = family.params();
    params.set("sessions", "20").unwrap();
    let content = match tokens {
        true => Content::Tokens,
        false => Content::Blocks { block_tokens: 16 },
    };
    let context = GeneratorContext {
        content,
        ..GeneratorContext::default()
    };
    family.write(&path, &params, &context).unwrap();
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
        let mut pairs = BTreeSet::new();
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
