//! What tools keep of a trace, and what they change.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trace::{Body, Content, LoadOptions, Row, TraceReader, TraceWriter, Workload, load};
use trace_gen::GeneratorContext;
use trace_gen::families::find;
use trace_import::tools::{
    By, Cut, Draw, MergeIds, anonymise, compare, cut, merge, rescale_time, sample, shuffle_sessions,
};

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn agents(&self, name: &str, sessions: &str, content: Content, seed: u32) -> PathBuf {
        let family = find("agent").unwrap();
        let mut params = family.params();
        let given = [
            ("sessions", sessions),
            ("template-tokens", "40"),
            ("project-tokens", "9"),
            ("goal-tokens", "exp(30)"),
            ("steps", "geometric(8)"),
            ("output-tokens", "uniform(1,20)"),
            ("fast-result-tokens", "exp(20)"),
            ("slow-result-tokens", "exp(20)"),
            ("human-result-tokens", "exp(20)"),
            ("context-tokens", "400"),
            ("summary-tokens", "30"),
            ("rewind-tokens", "20"),
        ];
        for (name, value) in given {
            params.set(name, value).unwrap();
        }
        let path = self.path(name);
        let context = GeneratorContext {
            content,
            seed,
            outputs_known: true,
        };
        family.write(&path, &params, &context).unwrap();
        path
    }
}

const BLOCKS: Content = Content::Blocks { block_tokens: 4 };

fn rows(path: &Path) -> Vec<Row<'static>> {
    let mut reader = TraceReader::open(path, None).unwrap();
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().unwrap() {
        rows.push(row.into_owned());
    }
    rows
}

fn workload(path: &Path) -> Workload {
    let options = LoadOptions {
        detect_collisions: true,
        ..LoadOptions::default()
    };
    load(path, &options).unwrap().workload
}

/// Ids go by location, and every parent is an earlier request of the same session.
fn check_references(rows: &[Row<'_>]) {
    for (location, row) in rows.iter().enumerate() {
        assert_eq!(row.request_id, location as u64);
        if let Some(parent) = row.parent_request {
            assert_eq!(rows[parent as usize].session_id, row.session_id);
            assert!(rows[parent as usize].step < row.step);
        }
    }
}

/// All of a session that does not depend on others: steps, times from its start, lengths, paths.
fn sessions(rows: &[Row<'static>]) -> BTreeMap<u64, Vec<Row<'static>>> {
    let mut sessions: BTreeMap<u64, Vec<Row<'static>>> = BTreeMap::new();
    let mut starts = BTreeMap::new();
    for row in rows {
        let start = *starts.entry(row.session_id).or_insert(row.arrival_us);
        sessions.entry(row.session_id).or_default().push(Row {
            request_id: 0,
            parent_request: None,
            arrival_us: row.arrival_us - start,
            ..row.clone()
        });
    }
    sessions
}

#[test]
fn a_cut_keeps_rows_in_order_and_drops_references_to_what_is_gone() {
    let folder = Folder::new();
    let whole = folder.agents("whole.parquet", "20", BLOCKS, 1);
    let all = rows(&whole);
    let part = folder.path("part.parquet");
    let asked = Cut {
        skip: 30,
        limit: Some(50),
        rebase: true,
        ..Cut::default()
    };
    let done = cut(&whole, &part, &asked).unwrap();
    assert_eq!((done.read, done.written), (all.len() as u64, 50));
    let kept = rows(&part);
    assert_eq!(kept[0].arrival_us, 0);
    for (new, old) in kept.iter().zip(&all[30..80]) {
        assert_eq!((&new.body, new.step), (&old.body, old.step));
        assert_eq!(new.arrival_us, old.arrival_us - all[30].arrival_us);
        let parent = old
            .parent_request
            .filter(|parent| (30..80).contains(parent));
        assert_eq!(new.parent_request, parent.map(|parent| parent - 30));
    }
    let (from, to) = (all[10].arrival_us, all[60].arrival_us);
    let asked = Cut {
        from_us: Some(from),
        to_us: Some(to),
        ..Cut::default()
    };
    cut(&whole, &part, &asked).unwrap();
    let expected = all
        .iter()
        .filter(|row| (from..to).contains(&row.arrival_us));
    assert_eq!(rows(&part).len(), expected.count());
}

fn draw(share: f64, seed: u64) -> Draw {
    Draw {
        share,
        seed,
        by: By::Session,
        rest: false,
    }
}

fn uses_of_blocks(path: &Path) -> BTreeMap<u64, usize> {
    let mut uses = BTreeMap::new();
    for row in rows(path) {
        let Body::Blocks { prompt, .. } = &row.body else {
            continue;
        };
        for block in prompt.iter() {
            *uses.entry(*block).or_default() += 1;
        }
    }
    uses
}

/// The same trace, of which nobody knows what belongs together.
fn forget_sessions(trace: &Path, out: &Path) {
    let mut reader = TraceReader::open(trace, None).unwrap();
    let mut writer = TraceWriter::create(out, &reader.meta().clone()).unwrap();
    while let Some(mut row) = reader.next_row().unwrap() {
        row.session_id = row.request_id;
        row.parent_request = None;
        row.step = 0;
        writer.write(&row).unwrap();
    }
    writer.finish().unwrap();
}

/// Every request is in the one or the other, and what has a rare prefix in common is in the same.
#[test]
fn a_sample_and_its_rest_are_the_whole() {
    let folder = Folder::new();
    let whole = folder.agents("whole.parquet", "400", BLOCKS, 3);
    let (part, rest) = (folder.path("part.parquet"), folder.path("rest.parquet"));
    let forgotten = folder.path("forgotten.parquet");
    forget_sessions(&whole, &forgotten);
    for (whole, by) in [(&whole, By::Session), (&forgotten, By::Prefix)] {
        let asked = Draw { by, ..draw(0.5, 4) };
        let sampled = sample(whole, &part, &asked).unwrap();
        let left = sample(
            whole,
            &rest,
            &Draw {
                rest: true,
                ..asked
            },
        )
        .unwrap();
        assert_eq!(sampled.written + left.written, sampled.read);
        assert!(sampled.written > 0 && left.written > 0);
        if by == By::Session {
            let (sampled, left) = (sessions(&rows(&part)), sessions(&rows(&rest)));
            assert!(sampled.keys().all(|session| !left.contains_key(session)));
        } else {
            let (sampled, left) = (uses_of_blocks(&part), uses_of_blocks(&rest));
            let torn = sampled.keys().filter(|block| left.contains_key(*block));
            let all = uses_of_blocks(whole);
            let most = rows(whole).len() / 100;
            assert!(torn.clone().count() > 0);
            assert!(torn.into_iter().all(|block| all[block] > most));
        }
    }
    let tokens = folder.agents("tokens.parquet", "2", Content::Tokens, 3);
    let asked = Draw {
        by: By::Prefix,
        ..draw(0.5, 4)
    };

    for (trace, why) in [(&tokens, "of tokens"), (&whole, "that knows its sessions")] {
        let refused = sample(trace, &rest, &asked).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("session, for a trace {why}")),
            "{refused}"
        );
    }
}

/// Whole sessions, as often as asked, whatever their length; and reuse counted anew from what is left.
#[test]
fn a_sample_is_of_whole_sessions_and_unbiased() {
    let folder = Folder::new();
    let whole = folder.agents("whole.parquet", "400", BLOCKS, 2);
    let all = sessions(&rows(&whole));
    let part = folder.path("part.parquet");
    let (mut kept, mut tokens) = (0, 0);
    for seed in 0..20 {
        sample(&whole, &part, &draw(0.25, seed)).unwrap();
        let rows = rows(&part);
        check_references(&rows);
        let sampled = sessions(&rows);
        for (session, rows) in &sampled {
            assert_eq!(rows, &all[session]);
        }
        kept += sampled.len();
        tokens += rows
            .iter()
            .map(|row| u64::from(row.prompt_tokens))
            .sum::<u64>();
        // What earlier requests left is counted among the requests that are there.
        let workload = workload(&part);
        let mut known = BTreeSet::new();
        for request in workload.requests() {
            let path = workload.path(request);
            let seen = path
                .iter()
                .take_while(|block| known.contains(*block))
                .count();
            assert_eq!(request.seen_blocks as usize, seen);
            known.extend(path.iter().copied());
        }
    }
    let of_sessions = kept as f64 / 8_000.0;
    assert!((of_sessions - 0.25).abs() < 0.02, "{of_sessions}");
    let every: u64 = all
        .values()
        .flatten()
        .map(|row| u64::from(row.prompt_tokens))
        .sum();
    let of_tokens = tokens as f64 / (20 * every) as f64;
    assert!((of_tokens - 0.25).abs() < 0.03, "{of_tokens}");
    for share in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(sample(&whole, &part, &draw(share, 0)).is_err());
    }
}

#[test]
fn merged_traces_keep_apart_what_is_not_the_same() {
    let folder = Folder::new();
    let one = folder.agents("one.parquet", "10", BLOCKS, 1);
    let other = folder.agents("other.parquet", "15", BLOCKS, 2);
    let out = folder.path("out.parquet");
    let inputs = [one.clone(), other.clone(), one.clone()];
    merge(&inputs, &out, MergeIds::Separate).unwrap();
    let merged = rows(&out);
    check_references(&merged);
    assert_eq!(sessions(&merged).len(), 35);
    assert_eq!(
        merged
            .iter()
            .map(|row| row.tenant)
            .collect::<BTreeSet<_>>()
            .len(),
        3
    );
    let distinct = |path: &Path| workload(path).distinct_blocks();
    assert_eq!(distinct(&out), 2 * distinct(&one) + distinct(&other));
    merge(&inputs, &out, MergeIds::Shared).unwrap();
    assert_eq!(distinct(&out), distinct(&one) + distinct(&other));
    let tokens = folder.agents("tokens.parquet", "3", Content::Tokens, 1);
    let fault = merge(&[one, tokens], &out, MergeIds::Separate)
        .unwrap_err()
        .to_string();
    assert!(
        fault.contains("tokens.parquet") && fault.contains("expected"),
        "{fault}"
    );
}

#[test]
fn shuffled_sessions_are_the_same_at_other_times() {
    let folder = Folder::new();
    let whole = folder.agents("whole.parquet", "400", BLOCKS, 3);
    let out = folder.path("out.parquet");
    shuffle_sessions(&whole, &out, 1).unwrap();
    let (before, after) = (rows(&whole), rows(&out));
    check_references(&after);
    assert_eq!(sessions(&before), sessions(&after));
    let starts = |rows: &[Row<'_>]| -> Vec<i64> {
        rows.iter()
            .filter(|row| row.step == 0)
            .map(|row| row.arrival_us)
            .collect()
    };
    assert_eq!(starts(&before), starts(&after));
    let order = |rows: &[Row<'_>]| -> Vec<u64> {
        rows.iter()
            .filter(|row| row.step == 0)
            .map(|row| row.session_id)
            .collect()
    };
    assert_ne!(order(&before), order(&after));
}

#[test]
fn time_is_rescaled_and_nothing_else() {
    let folder = Folder::new();
    let whole = folder.agents("whole.parquet", "10", BLOCKS, 4);
    let out = folder.path("out.parquet");
    rescale_time(&whole, &out, 0.25).unwrap();
    for (old, new) in rows(&whole).into_iter().zip(rows(&out)) {
        assert!((new.arrival_us as f64 - old.arrival_us as f64 / 4.0).abs() <= 0.5);
        let moved = Row {
            arrival_us: new.arrival_us,
            ..old
        };
        assert_eq!(moved, new);
    }
    for factor in [0.0, -1.0, f64::INFINITY, 1e300] {
        assert!(rescale_time(&whole, &out, factor).is_err());
    }
}

#[test]
fn anonymous_traces_keep_lengths_times_and_sharing_and_no_id() {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    for content in [BLOCKS, Content::Tokens] {
        let whole = folder.agents("whole.parquet", "10", content, 5);
        anonymise(&whole, &out, "a secret", None).unwrap();
        let (before, after) = (workload(&whole), workload(&out));
        assert_eq!(before.arena(), after.arena());
        let facts = |workload: &Workload| -> Vec<_> {
            let first_us = workload.requests()[0].arrival_us;
            let requests = workload.requests().iter();
            requests
                .map(|request| {
                    (
                        request.arrival_us - first_us,
                        request.prompt_tokens,
                        request.step,
                    )
                })
                .collect()
        };
        assert_eq!(facts(&before), facts(&after));
        assert!(after.tools().iter().all(|tool| tool.starts_with("tool-")));
        assert_eq!(after.provenance().seed, None);
        let other = folder.path("other.parquet");
        anonymise(&whole, &other, "another", None).unwrap();
        let ids = |path: &Path| -> BTreeSet<u64> {
            let blocks = rows(path).into_iter().map(|row| match row.body {
                trace::Body::Blocks { prompt, .. } => prompt.into_owned(),
                trace::Body::Tokens { .. } => panic!("a block trace"),
            });
            blocks.flatten().collect()
        };
        assert!(ids(&out).is_disjoint(&ids(&other)));
        assert!(anonymise(&whole, &out, "", None).is_err());
    }
}

#[test]
fn a_trace_is_like_itself_and_unlike_another() {
    let folder = Folder::new();
    let one = folder.agents("one.parquet", "60", BLOCKS, 6);
    let same = compare(&one, &one, None).unwrap();
    assert_eq!(same.dimensions.len(), 8);
    for dimension in &same.dimensions {
        assert_eq!(dimension.kolmogorov, Some(0.0), "{}", dimension.name);
        assert_eq!(dimension.log2_distance, Some(0.0), "{}", dimension.name);
    }
    let slow = folder.path("slow.parquet");
    rescale_time(&one, &slow, 8.0).unwrap();
    for dimension in compare(&one, &slow, None).unwrap().dimensions {
        let far = dimension.log2_distance.unwrap();
        match dimension.name {
            "gap_seconds" | "session_gap_seconds" => assert!((far - 3.0).abs() < 0.1, "{far}"),
            name => assert_eq!(far, 0.0, "{name}"),
        }
    }
}

#[test]
fn ids_that_contradict_each_other_are_not_merged_as_shared() {
    let folder = Folder::new();
    let trace = |name: &str, blocks: &[u64]| {
        let path = folder.path(name);
        let meta = trace::Meta::new(Content::Blocks { block_tokens: 1 });
        let mut writer = TraceWriter::create(&path, &meta).unwrap();
        writer
            .write(&Row {
                prompt_tokens: 2,
                body: Body::Blocks {
                    prompt: blocks.into(),
                    output: None,
                },
                ..Row::default()
            })
            .unwrap();
        writer.finish().unwrap();
        path
    };
    let inputs = [trace("a.parquet", &[1, 2]), trace("b.parquet", &[3, 2])];
    let out = folder.path("out.parquet");
    let fault = merge(&inputs, &out, MergeIds::Shared).unwrap_err();
    assert!(
        fault.to_string().contains("b.parquet: block id 2"),
        "{fault}"
    );
    assert!(!out.exists());
    merge(&inputs, &out, MergeIds::Separate).unwrap();
    load(&out, &LoadOptions::default()).unwrap();
}
