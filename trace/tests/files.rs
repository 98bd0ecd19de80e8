//! Trace files as others write them, and as they break.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, LargeListArray,
    LargeStringArray, ListArray, NullArray, RecordBatch, StringArray, StringViewArray, UInt8Array,
    UInt64Array,
};
use arrow::datatypes::{Int8Type, Int32Type, Int64Type, Schema, UInt32Type, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use tempfile::TempDir;
use trace::{
    BlockId, Body, Content, Hints, LoadOptions, Loaded, Meta, Provenance, Row, TraceError,
    TraceReader, TraceWriter, load,
};

/// A file as somebody else makes it: the columns of a small block trace, each replaceable.
struct HandMade {
    columns: Vec<(&'static str, ArrayRef)>,
    metadata: Vec<(&'static str, &'static str)>,
}

impl HandMade {
    /// Two requests in blocks of 4 tokens: 9 tokens, then the same and one block more.
    fn blocks() -> Self {
        Self {
            columns: vec![
                ("request_id", Arc::new(Int64Array::from(vec![10, 11]))),
                ("arrival_us", Arc::new(Int64Array::from(vec![0, 5]))),
                ("session_id", Arc::new(Int32Array::from(vec![1, 1]))),
                ("prompt_tokens", Arc::new(Int64Array::from(vec![9, 12]))),
                ("output_tokens", Arc::new(UInt8Array::from(vec![1, 4]))),
                ("prompt_blocks", lists(vec![vec![7, 8], vec![7, 8, 9]])),
            ],
            metadata: vec![("trace.block_tokens", "4")],
        }
    }

    /// The same as tokens.
    fn tokens() -> Self {
        let mut made = Self::blocks().without("prompt_blocks");
        made.metadata.clear();
        made.with("prompt", lists(vec![(0..9).collect(), (0..12).collect()]))
    }

    fn without(mut self, name: &str) -> Self {
        self.columns.retain(|(column, _)| *column != name);
        self
    }

    fn with(self, name: &'static str, array: ArrayRef) -> Self {
        let mut made = self.without(name);
        made.columns.push((name, array));
        made
    }

    fn meta(mut self, key: &'static str, value: &'static str) -> Self {
        self.metadata.retain(|(known, _)| *known != key);
        self.metadata.push((key, value));
        self
    }

    fn write(&self, folder: &TempDir) -> PathBuf {
        let path = folder.path().join("hand-made.parquet");
        let batch = match self.columns.is_empty() {
            true => RecordBatch::new_empty(Arc::new(Schema::empty())),
            false => RecordBatch::try_from_iter_with_nullable(
                self.columns
                    .iter()
                    .map(|(name, array)| (*name, array.clone(), true)),
            )
            .unwrap(),
        };
        let pairs = self.metadata.iter();
        let pairs = pairs.map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(pairs.collect()))
            .build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        path
    }

    fn load(&self) -> Result<Loaded, TraceError> {
        let folder = tempfile::tempdir().unwrap();
        load(&self.write(&folder), &LoadOptions::default())
    }

    /// The error's text, without the folder.
    fn error(&self) -> String {
        let text = self.load().map(|_| ()).unwrap_err().to_string();
        text.rsplit_once("hand-made.parquet: ")
            .unwrap()
            .1
            .to_owned()
    }
}

fn lists(rows: Vec<Vec<i64>>) -> ArrayRef {
    let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some)));
    Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
}

#[test]
fn a_file_made_by_hand_loads_with_the_required_columns_only() {
    for made in [HandMade::blocks(), HandMade::tokens()] {
        let loaded = made.load().unwrap();
        let workload = &loaded.workload;
        let requests = workload.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].request_id, 11);
        assert_eq!(
            (requests[1].kind, requests[1].tool, requests[1].step),
            (0, None, 0)
        );
        assert!(workload.hints(0).is_none());
        if loaded.content == (Content::Blocks { block_tokens: 4 }) {
            assert_eq!(workload.path(&requests[1]), [0, 1, 2].map(BlockId));
            assert_eq!(requests[1].seen_blocks, 2);
        }
    }
}

#[test]
fn other_widths_lists_and_texts_are_converted() {
    let dictionary: DictionaryArray<Int8Type> = vec!["goal", "step"].into_iter().collect();
    let large = LargeListArray::from_iter_primitive::<UInt64Type, _, _>(vec![
        Some(vec![Some(7), Some(8)]),
        Some(vec![Some(7), Some(8), Some(9)]),
    ]);
    let kinds: Vec<ArrayRef> = vec![
        Arc::new(dictionary),
        Arc::new(StringArray::from(vec!["goal", "step"])),
        Arc::new(LargeStringArray::from(vec!["goal", "step"])),
        Arc::new(StringViewArray::from(vec!["goal", "step"])),
    ];
    for kind in kinds {
        let loaded = HandMade::blocks()
            .with("kind", kind)
            .with("tool", Arc::new(NullArray::new(2)))
            .with("output_blocks", Arc::new(NullArray::new(2)))
            .with("prompt_blocks", Arc::new(large.clone()))
            .with("priority", Arc::new(Int64Array::from(vec![None, Some(3)])))
            .with("note", Arc::new(BooleanArray::from(vec![true, false])))
            .load()
            .unwrap();
        let workload = loaded.workload;
        assert_eq!(workload.kinds(), ["", "goal", "step"]);
        assert_eq!(workload.requests()[1].kind, 2);
        assert_eq!(workload.hints(0), Some(&Hints::default()));
        assert_eq!(workload.hints(1).unwrap().priority, Some(3));
        assert_eq!(
            workload.path(&workload.requests()[1]),
            [0, 1, 2].map(BlockId)
        );
    }
}

#[test]
fn known_outputs_extend_the_path() {
    // 9 + 1 tokens: the last is not cached, so no block more. 12 + 5: one.
    let loaded = HandMade::blocks()
        .with("output_tokens", Arc::new(Int64Array::from(vec![1, 5])))
        .with("output_blocks", lists(vec![vec![], vec![10]]))
        .load()
        .unwrap();
    let requests = loaded.workload.requests();
    assert_eq!((requests[0].prompt_blocks, requests[0].path_blocks), (2, 2));
    assert_eq!((requests[1].prompt_blocks, requests[1].path_blocks), (3, 4));
}

fn int(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

/// Each hand-made file fails to load, with an error that begins so.
fn expect_errors(cases: &[(HandMade, &str)]) {
    for (made, expected) in cases {
        let found = made.error();
        assert!(
            found.starts_with(expected),
            "found: {found}\nexpected: {expected}"
        );
    }
}

#[test]
fn a_missing_or_mistyped_column_is_named() {
    let base = HandMade::blocks;
    let floats = Arc::new(Float64Array::from(vec![9.0, 12.0]));
    expect_errors(&[
        (
            base().without("arrival_us"),
            "column `arrival_us` is missing; expected an integer column (i64)",
        ),
        (
            base().without("prompt_blocks"),
            "column `prompt` or `prompt_blocks` is missing",
        ),
        (
            base().with("prompt_tokens", floats),
            "column `prompt_tokens` has type Float64; expected an integer column (u32)",
        ),
        (
            base().with("kind", int(vec![1, 2])),
            "column `kind` has type Int64; expected a text column",
        ),
        (
            base().with("prompt_blocks", int(vec![1, 2])),
            "column `prompt_blocks` has type Int64; expected a list of integers (list<u64>)",
        ),
    ]);
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_row() {
    let base = HandMade::blocks;
    let sessions = Arc::new(Int64Array::from(vec![Some(1), None]));
    expect_errors(&[
        (
            base().with("arrival_us", int(vec![5, 4])),
            "row 1, column `arrival_us`: 4; expected rows sorted by arrival (the row before has 5)",
        ),
        (
            base().with("arrival_us", int(vec![-1, 4])),
            "row 0, column `arrival_us`: -1; expected microseconds from 0 to 2^53",
        ),
        (
            base().with("prompt_tokens", int(vec![9, -12])),
            "row 1, column `prompt_tokens`: -12; expected an integer from 0 to 4294967295",
        ),
        (
            base().with("prompt_tokens", int(vec![9, 1 << 32])),
            "row 1, column `prompt_tokens`: 4294967296; expected an integer from 0 to 4294967295",
        ),
        (
            base().with("output_tokens", int(vec![9, (1 << 32) - 1])),
            "row 1, column `output_tokens`: prompt and output have 4294967307 tokens together",
        ),
        (
            base().with("session_id", sessions),
            "row 1, column `session_id`: null; expected an integer column (u64)",
        ),
        (
            base().with("request_id", int(vec![3, 3])),
            "row 1, column `request_id`: 3, which an earlier row has",
        ),
    ]);
}

#[test]
fn a_body_that_does_not_match_its_token_counts_is_named_with_its_row() {
    let base = HandMade::blocks;
    expect_errors(&[
        (
            base().with("prompt_tokens", int(vec![9, 16])),
            "row 1, column `prompt_blocks`: 3 blocks; \
             expected 4: the full blocks of 4 tokens in a prompt of 16",
        ),
        (
            base().with("prompt_blocks", lists(vec![vec![7, 8], vec![7, 8, -9]])),
            "row 1, column `prompt_blocks`: element 2 is null, negative or too large",
        ),
        (
            base().with("output_blocks", lists(vec![vec![], vec![1, 2]])),
            "row 1, column `output_blocks`: 2 blocks; expected 0",
        ),
        (
            HandMade::tokens().with("prompt", lists(vec![vec![1], vec![2]])),
            "row 0, column `prompt`: 1 tokens; expected 9 (prompt_tokens)",
        ),
        (
            HandMade::tokens().with("output", lists(vec![vec![1], vec![2]])),
            "row 1, column `output`: 1 tokens; expected 4 (output_tokens)",
        ),
    ]);
}

#[test]
fn metadata_that_cannot_be_used_is_named() {
    let base = HandMade::blocks;
    expect_errors(&[
        (
            base().meta("trace.schema", "2"),
            "metadata `trace.schema` is `2`; expected `1`",
        ),
        (
            base().meta("trace.content", "words"),
            "metadata `trace.content` is `words`; expected `tokens` or `blocks`",
        ),
        (
            base().meta("trace.content", "tokens"),
            "column `prompt` is missing",
        ),
        (
            base().meta("trace.block_tokens", "0"),
            "metadata `trace.block_tokens` is `0`; expected the tokens of a block, at least 1",
        ),
        (
            base().meta("trace.block_tokens", "x"),
            "metadata `trace.block_tokens` is `x`",
        ),
        (
            base().with("prompt", lists(vec![vec![], vec![]])),
            "metadata `trace.content` is absent",
        ),
    ]);
}

#[test]
fn a_null_list_is_not_an_empty_list() {
    let prompts =
        ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(7), Some(8)]), None]);
    let made = HandMade::blocks()
        .with("prompt_tokens", Arc::new(Int64Array::from(vec![9, 3])))
        .with("prompt_blocks", Arc::new(prompts));
    let expected =
        "row 1, column `prompt_blocks`: null; expected a list, empty where there is nothing";
    assert_eq!(made.error(), expected);
}

#[test]
fn names_through_a_dictionary_may_be_null() {
    let tools: DictionaryArray<Int32Type> = vec![Some("search"), None].into_iter().collect();
    let loaded = HandMade::blocks()
        .with("tool", Arc::new(tools))
        .load()
        .unwrap();
    let tools = loaded
        .workload
        .requests()
        .iter()
        .map(|request| request.tool);
    assert_eq!(tools.collect::<Vec<_>>(), [Some(0), None]);
}

/// Fault 16 of other engines: ids 1 and 2^32 + 1 never match.
#[test]
fn ids_of_64_bits_are_not_cut() {
    let ids = ListArray::from_iter_primitive::<UInt64Type, _, _>(vec![
        Some(vec![Some(1), Some(2)]),
        Some(vec![
            Some((1 << 32) + 1),
            Some((1 << 32) + 2),
            Some(u64::MAX),
        ]),
    ]);
    let loaded = HandMade::blocks()
        .with("prompt_blocks", Arc::new(ids))
        .load()
        .unwrap();
    assert_eq!(loaded.workload.distinct_blocks(), 5);
    assert_eq!(loaded.workload.requests()[1].seen_blocks, 0);
}

/// Fault 17 of other engines: 20 tokens with two ids at block 512; one id at two places.
#[test]
fn contradictory_rows_are_named() {
    let made = HandMade::blocks()
        .meta("trace.block_tokens", "512")
        .with("prompt_tokens", Arc::new(Int64Array::from(vec![20, 12])));
    let expected = "row 0, column `prompt_blocks`: 2 blocks; expected 0: the full blocks of 512 tokens in a prompt of 20";
    assert_eq!(made.error(), expected);

    let made = HandMade::blocks().with("prompt_blocks", lists(vec![vec![7, 8], vec![8, 7, 9]]));
    let expected = "row 1: block id 8 at position 0 follows nothing (it began a path), but followed block 7 before";
    assert!(made.error().starts_with(expected), "{}", made.error());

    let made = HandMade::blocks().with("prompt_blocks", lists(vec![vec![7, 7], vec![7, 8, 9]]));
    assert!(
        made.error().starts_with("row 0: block id 7 at position 1"),
        "{}",
        made.error()
    );
}

#[test]
fn block_size_of_a_block_trace_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |path: &Path, block_tokens| {
        let options = LoadOptions {
            block_tokens: Some(block_tokens),
            ..LoadOptions::default()
        };
        load(path, &options).map(|loaded| loaded.workload.block_tokens())
    };
    let path = HandMade::blocks().write(&folder);
    assert_eq!(asked(&path, 4).unwrap(), 4);
    let fault = asked(&path, 16).unwrap_err().to_string();
    assert!(
        fault.ends_with(
            "block size of 16 tokens asked for; expected 4, the size of this block trace's blocks"
        ),
        "{fault}"
    );

    let mut made = HandMade::blocks();
    made.metadata.clear();
    assert!(made.error().contains("`trace.block_tokens` is absent"));
    let path = made.write(&folder);
    assert_eq!(asked(&path, 4).unwrap(), 4);
    assert!(matches!(
        asked(&path, 0),
        Err(TraceError::BlockTokens { asked: 0, .. })
    ));

    let path = HandMade::tokens().write(&folder);
    assert_eq!(asked(&path, 4).unwrap(), 4);
    assert!(matches!(
        asked(&path, 0),
        Err(TraceError::BlockTokens { asked: 0, .. })
    ));
}

#[test]
fn files_that_are_no_traces_are_refused_in_plain_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = HandMade::blocks().write(&folder);
    let whole = std::fs::read(&path).unwrap();
    let error = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load(&path, &LoadOptions::default())
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(error(b"").ends_with("the file is empty"));
    assert!(error(b"request_id,arrival_us\n1,2\n").contains("does not begin with PAR1"));
    assert!(error(&whole[..whole.len() / 2]).contains("cut short"));
    assert!(error(&whole[..3]).contains("does not begin with PAR1"));
    let missing = load(&folder.path().join("none"), &LoadOptions::default());
    assert!(matches!(missing, Err(TraceError::Io { .. })));
}

#[test]
fn a_trace_without_rows_is_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.parquet");
    let meta = Meta::new(Content::Blocks { block_tokens: 16 });
    assert_eq!(
        TraceWriter::create(&path, &meta).unwrap().finish().unwrap(),
        0
    );
    let loaded = load(&path, &LoadOptions::default()).unwrap();
    assert!(loaded.workload.requests().is_empty());
    assert_eq!(loaded.workload.block_tokens(), 16);
}

#[test]
fn an_unfinished_or_faulty_trace_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    std::fs::write(&path, "old").unwrap();
    let mut writer = TraceWriter::create(&path, &Meta::new(Content::Tokens)).unwrap();
    let wrong = Row {
        prompt_tokens: 3,
        ..Row::default()
    };
    assert!(matches!(
        writer.write(&wrong),
        Err(TraceError::Value { row: 0, .. })
    ));
    drop(writer);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    let nowhere = folder.path().join("none").join("trace.parquet");
    let meta = Meta::new(Content::Blocks { block_tokens: 0 });
    assert!(matches!(
        TraceWriter::create(&path, &meta),
        Err(TraceError::Metadata { .. })
    ));
    assert!(TraceWriter::create(&nowhere, &Meta::new(Content::Tokens)).is_err());
    assert!(TraceWriter::create(folder.path(), &Meta::new(Content::Tokens)).is_err());
}

#[test]
fn damaged_files_give_errors_not_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = HandMade::blocks()
        .with("kind", Arc::new(StringArray::from(vec!["goal", "step"])))
        .write(&folder);
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= [0x01, 0x80, 0xff][at % 3];
        std::fs::write(&path, &bytes).unwrap();
        refused += usize::from(load(&path, &LoadOptions::default()).is_err());
    }
    assert!(
        refused > whole.len() / 8,
        "{refused} of {} damaged files refused",
        whole.len()
    );
}

fn some_rows(content: Content) -> impl Strategy<Value = Vec<Row<'static>>> {
    let row = (
        0..40_u32,
        0..40_u32,
        any::<[bool; 4]>(),
        0..1_000_i64,
        any::<u64>(),
    );
    prop::collection::vec(row, 0..20).prop_map(move |rows| {
        let mut arrival_us = 0;
        let rows = rows.into_iter().enumerate();
        rows.map(
            |(index, (s, o, [known, named, hinted, parent], gap, big))| {
                arrival_us += gap;
                let tokens = |count: u32| -> Vec<u32> {
                    (0..count).map(|k| k.wrapping_mul(big as u32)).collect()
                };
                let blocks = |count: u32| -> Vec<u64> {
                    (0..count).map(|k| big.wrapping_add(k.into())).collect()
                };
                Row {
                    request_id: index as u64,
                    arrival_us,
                    session_id: big,
                    step: s,
                    parent_request: parent.then_some(big),
                    kind: Cow::Borrowed(if named { "goal" } else { "" }),
                    tenant: o,
                    tool: named.then_some(Cow::Borrowed("search")),
                    prompt_tokens: s,
                    output_tokens: o,
                    body: match content {
                        Content::Tokens => Body::Tokens {
                            prompt: tokens(s).into(),
                            output: known.then(|| tokens(o).into()),
                        },
                        Content::Blocks { block_tokens: b } => Body::Blocks {
                            prompt: blocks(s / b).into(),
                            output: known.then(|| blocks((s + o.max(1) - 1) / b - s / b).into()),
                        },
                    },
                    hints: match hinted {
                        true => Hints {
                            priority_ttl_us: Some(big),
                            steps_to_next: Some(s),
                            ..Hints::default()
                        },
                        false => Hints::default(),
                    },
                }
            },
        )
        .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(
        (content, rows) in prop_oneof![Just(Content::Tokens), (1..9_u32).prop_map(|block_tokens| Content::Blocks { block_tokens })]
            .prop_flat_map(|content| (Just(content), some_rows(content)))
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.parquet");
        let meta = Meta {
            content,
            provenance: Provenance { name: Some("some".to_owned()), seed: Some("7".to_owned()), ..Provenance::default() },
        };
        let mut writer = TraceWriter::create(&path, &meta).unwrap();
        for row in &rows {
            writer.write(row).unwrap();
        }
        prop_assert_eq!(writer.finish().unwrap(), rows.len() as u64);
        let mut reader = TraceReader::open(&path, None).unwrap();
        prop_assert_eq!(reader.meta(), &meta);
        prop_assert_eq!(reader.total_rows(), rows.len() as u64);
        for row in &rows {
            let read = reader.next_row().unwrap();
            prop_assert_eq!(read.as_ref(), Some(row));
        }
        prop_assert_eq!(reader.next_row().unwrap(), None);
    }
}

#[test]
fn many_row_groups_are_read_in_bounded_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    let meta = Meta::new(Content::Blocks { block_tokens: 1 });
    let mut writer = TraceWriter::create(&path, &meta).unwrap();
    let ids: Vec<u64> = (0..100_000).collect();
    for request_id in 0..200 {
        let row = Row {
            request_id,
            prompt_tokens: 100_000,
            body: Body::Blocks {
                prompt: Cow::Borrowed(&ids),
                output: None,
            },
            ..Row::default()
        };
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    let groups = parquet::file::reader::FileReader::num_row_groups(
        &parquet::file::serialized_reader::SerializedFileReader::try_from(path.as_path()).unwrap(),
    );
    assert_eq!(groups, 3);
    let loaded = load(&path, &LoadOptions::default()).unwrap();
    assert_eq!(loaded.workload.arena().len(), 20_000_000);
    assert_eq!(loaded.workload.distinct_blocks(), 100_000);
}

#[test]
fn lists_of_the_written_type_need_no_conversion() {
    let tokens = ListArray::from_iter_primitive::<UInt32Type, _, _>(vec![
        Some((0..9).map(Some).collect::<Vec<_>>()),
        Some((0..12).map(Some).collect()),
    ]);
    let ids = UInt64Array::from(vec![1, 2]);
    let loaded = HandMade::tokens()
        .with("prompt", Arc::new(tokens))
        .with("request_id", Arc::new(ids))
        .load()
        .unwrap();
    assert_eq!(loaded.workload.requests()[0].request_id, 1);
    assert_eq!(loaded.workload.rounding_lost_tokens(), Some(&[0, 9][..]));
}

/// The loaded form of prompts without outputs, in blocks of `block_tokens`.
fn load_prompts(prompts: &[Vec<u32>], block_tokens: u32) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.parquet");
    let mut writer = TraceWriter::create(&path, &Meta::new(Content::Tokens)).unwrap();
    for (index, prompt) in prompts.iter().enumerate() {
        let row = Row {
            request_id: index as u64,
            prompt_tokens: prompt.len() as u32,
            output_tokens: 1,
            body: Body::Tokens {
                prompt: Cow::Borrowed(prompt),
                output: None,
            },
            ..Row::default()
        };
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    let options = LoadOptions {
        block_tokens: Some(block_tokens),
        detect_collisions: true,
    };
    load(&path, &options).unwrap()
}

/// Fault 4 of other engines: the last prompt token is always computed.
#[test]
fn the_last_token_is_never_a_hit() {
    for (tokens, block_tokens, hit_tokens) in [(8, 4, 4), (8, 1, 7), (9, 4, 8)] {
        let prompt: Vec<u32> = (1..=tokens).collect();
        let workload = load_prompts(&[prompt.clone(), prompt], block_tokens).workload;
        let second = &workload.requests()[1];
        let hit_blocks = second.seen_blocks.min(workload.usable_blocks(second));
        assert_eq!(hit_blocks * block_tokens, hit_tokens);
    }
}

/// Fault 5 of other engines: a prompt shorter than a block has no block.
#[test]
fn a_prompt_shorter_than_a_block_has_none() {
    let workload = load_prompts(&[vec![1, 2, 3], vec![]], 4).workload;
    assert_eq!(workload.distinct_blocks(), 0);
    assert_eq!(workload.requests()[1].prompt_tokens, 0);
    assert!(workload.path(&workload.requests()[0]).is_empty());
}

/// Fault 21 of other engines: sharing below a block's size is reported, without the last token.
#[test]
fn sharing_below_a_block_is_reported_as_lost() {
    let prompts = [
        vec![1, 2, 3, 4, 5, 6, 7],
        vec![1, 2, 3, 4, 5, 6, 8],
        vec![1, 2, 9],
        vec![1, 2, 9],
        vec![1, 2, 3, 4],
    ];
    let workload = load_prompts(&prompts, 4).workload;
    assert_eq!(workload.rounding_lost_tokens(), Some(&[0, 2, 2, 2, 3][..]));
}

/// Files made to harm: refused in plain words, by a library that neither overflows its stack nor asks for gigabytes.
#[test]
fn crafted_files_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases/edge");
    if !folder.exists() {
        eprintln!("skipped: no ../shared");
        return;
    }
    for (name, expected) in [
        ("arrival-i64max-cost-aware-hang.parquet", "2^53"),
        (
            "deep-schema-stack-overflow.parquet",
            "levels of nested columns",
        ),
    ] {
        let fault = load(&folder.join(name), &LoadOptions::default()).unwrap_err();
        assert!(fault.to_string().contains(expected), "{fault}");
    }
}

/// A trace of this crate, with every kind of column in it.
fn sealed(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("sealed.parquet");
    let meta = Meta {
        content: Content::Blocks { block_tokens: 4 },
        provenance: Provenance {
            name: Some("sealed".to_owned()),
            ..Provenance::default()
        },
    };
    let mut writer = TraceWriter::create(&path, &meta).unwrap();
    for index in 0..200_u64 {
        let prompt: Vec<u64> = (0..20).map(|block| block + index % 7 * 1_000).collect();
        let row = Row {
            request_id: index,
            arrival_us: index as i64 * 1_000,
            session_id: index % 7,
            prompt_tokens: 80,
            output_tokens: 3,
            kind: Cow::Borrowed("user"),
            body: Body::Blocks {
                prompt: Cow::Owned(prompt),
                output: None,
            },
            ..Row::default()
        };
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Every single damaged bit of a file that this crate wrote is noticed.
#[test]
fn flipped_bits_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = sealed(&folder);
    let whole = std::fs::read(&path).unwrap();
    load(&path, &LoadOptions::default()).unwrap();
    let bits = whole.len() as u64 * 8;
    let damaged = folder.path().join("damaged.parquet");
    for flip in 0..300_u64 {
        let bit = flip.wrapping_mul(0x9e37_79b9_7f4a_7c15) % bits;
        let mut bytes = whole.clone();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(&damaged, &bytes).unwrap();
        let loaded = load(&damaged, &LoadOptions::default());
        assert!(loaded.is_err(), "bit {bit} of {bits}");
    }
}

/// The last kilobyte is the footer with the checksum itself, so there every byte has its turn.
#[test]
fn flipped_bits_of_the_footer_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = sealed(&folder);
    let whole = std::fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.parquet");
    for at in whole.len().saturating_sub(1_000)..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&damaged, &bytes).unwrap();
        let loaded = load(&damaged, &LoadOptions::default());
        assert!(loaded.is_err(), "byte {at} of {}", whole.len());
    }
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let mut made = HandMade::blocks();
    made.columns
        .push(("prompt_tokens", Arc::new(Int64Array::from(vec![1, 2]))));
    let fault = made.error();
    let expected = "two columns are named `prompt_tokens`";
    assert!(fault.contains(expected), "{fault}");
}

/// Counts of rows stand twice in a footer: in all, and per row group.
#[test]
fn a_wrong_count_of_rows_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = HandMade::blocks().write(&folder);
    let whole = std::fs::read(&path).unwrap();
    // The next field, a number of 64 bits: 2; then the next, a list of one row group.
    let all = whole.windows(4).rposition(|w| w == [0x16, 4, 0x19, 0x1c]);
    for count in [0, 1, 3, 60] {
        let mut bytes = whole.clone();
        bytes[all.unwrap() + 1] = count * 2;
        std::fs::write(&path, &bytes).unwrap();
        let fault = load(&path, &LoadOptions::default()).unwrap_err();
        assert!(fault.to_string().contains("its footer says"), "{fault}");
    }
}

/// A row group as large as others write them is no bomb.
#[test]
fn ten_million_values_in_a_row_group_are_read() {
    const ROWS: i64 = 100;
    let column = |of: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)))
    };
    let paths = (0..ROWS).map(|row| (row * 100_000..(row + 1) * 100_000).collect());
    let made = HandMade::blocks()
        .with("request_id", column(|row| row))
        .with("arrival_us", column(|row| row))
        .with("session_id", column(|row| row))
        .with("prompt_tokens", column(|_| 400_000))
        .with("output_tokens", column(|_| 1))
        .with("prompt_blocks", lists(paths.collect()));
    let workload = made.load().unwrap().workload;
    assert_eq!(workload.distinct_blocks(), 10_000_000);
}
