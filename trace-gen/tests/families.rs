//! What every family must keep, and the structure of each.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;
use trace::{Body, Content, Hints, LoadOptions, Request, TraceReader, Workload, load};
use trace_gen::families::{FAMILIES, Family, Setup, find};

/// Settings that make a family small: every length about a hundredth of its own.
fn small(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "agent" | "chat" => &[
            ("sessions", "12"),
            ("template-tokens", "uniform(10,40)"),
            ("project-tokens", "uniform(0,20)"),
            ("goal-tokens", "uniform(1,30)"),
            ("steps", "geometric(12)"),
            ("output-tokens", "uniform(1,12)"),
            ("fast-result-tokens", "exp(15)"),
            ("slow-result-tokens", "exp(15)"),
            ("human-result-tokens", "exp(9)"),
            ("context-tokens", "uniform(120,200)"),
            ("window-tokens", "uniform(60,110)"),
            ("summary-tokens", "exp(20)"),
            ("retry", "0.1"),
            ("rewind", "0.1"),
            ("rewind-tokens", "exp(20)"),
            ("abandon", "0.02"),
        ],
        "fanout" => &[
            ("sessions", "10"),
            ("template-tokens", "30"),
            ("goal-tokens", "10"),
            ("output-tokens", "uniform(1,9)"),
            ("branch-tokens", "4"),
            ("result-tokens", "exp(6)"),
        ],
        "mapreduce" => &[
            ("sessions", "8"),
            ("template-tokens", "20"),
            ("shared-tokens", "50"),
            ("plan-tokens", "uniform(1,9)"),
            ("part-tokens", "12"),
            ("map-output-tokens", "uniform(1,9)"),
            ("output-tokens", "5"),
        ],
        "multi-agent" => &[
            ("sessions", "8"),
            ("template-tokens", "30"),
            ("project-tokens", "7"),
            ("goal-tokens", "10"),
            ("task-tokens", "5"),
            ("output-tokens", "uniform(1,9)"),
            ("result-tokens", "5"),
            ("report-tokens", "6"),
        ],
        "rag" => &[
            ("sessions", "150"),
            ("template-tokens", "13"),
            ("corpus", "15"),
            ("passage-tokens", "uniform(1,20)"),
            ("passages", "uniform(0,4)"),
            ("question-tokens", "3"),
            ("output-tokens", "3"),
        ],
        "oneshot" => &[
            ("sessions", "100"),
            ("template-tokens", "9"),
            ("prompt-tokens", "exp(30)"),
            ("output-tokens", "4"),
        ],
        "cron" => &[
            ("sessions", "10"),
            ("template-tokens", "9"),
            ("job-tokens", "30"),
            ("fresh-tokens", "exp(1)"),
            ("output-tokens", "uniform(0,3)"),
            ("firings", "uniform(1,9)"),
        ],
        "scan" => &[
            ("sessions", "4"),
            ("template-tokens", "9"),
            ("chunks", "12"),
            ("chunk-tokens", "exp(20)"),
            ("passes", "uniform(1,3)"),
            ("output-tokens", "uniform(1,3)"),
        ],
        "version-roll" => &[
            ("sessions", "120"),
            ("template-tokens", "40"),
            ("roll-seconds", "40"),
            ("rollout-seconds", "10"),
            ("prompt-tokens", "5"),
            ("output-tokens", "3"),
        ],
        "mixture" => &[
            ("sessions", "60"),
            ("parts", "agent=1,oneshot=3,rag=2,cron=1,fanout=1"),
            (
                "set",
                "agent.template-tokens=20;agent.project-tokens=3;agent.goal-tokens=9;agent.context-tokens=150;\
                     agent.steps=6;agent.output-tokens=5;oneshot.prompt-tokens=9;rag.corpus=10;rag.passage-tokens=5;\
                     cron.job-tokens=12;cron.template-tokens=3;fanout.template-tokens=7;fanout.goal-tokens=4;\
                     fanout.output-tokens=4;fanout.result-tokens=4;agent.fast-result-tokens=9;rag.template-tokens=9;\
                     agent.slow-result-tokens=9;agent.human-result-tokens=9;agent.summary-tokens=9",
            ),
        ],
        other => panic!("say how the family {other} is made small"),
    }
}

/// A trace in a folder of its own.
struct Made {
    _folder: TempDir,
    path: PathBuf,
    requests: u64,
}

fn make(family: &'static Family, said: &[(&str, &str)], setup: &Setup) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.parquet");
    let mut values = family.values();
    for (name, value) in said {
        values.set(name, value).unwrap();
    }
    let requests = family.write(&path, &values, setup).unwrap();
    Made {
        _folder: folder,
        path,
        requests,
    }
}

impl Made {
    fn load(&self, block_tokens: u32) -> Workload {
        let options = LoadOptions {
            block_tokens: Some(block_tokens),
            detect_collisions: true,
        };
        load(&self.path, &options).unwrap().workload
    }

    fn prompts(&self) -> Vec<Vec<u32>> {
        let mut reader = TraceReader::open(&self.path, None).unwrap();
        let mut prompts = Vec::new();
        while let Some(row) = reader.next_row().unwrap() {
            let Body::Tokens { prompt, .. } = row.body else {
                panic!("a token trace");
            };
            prompts.push(prompt.into_owned());
        }
        prompts
    }
}

fn tokens(seed: u32) -> Setup {
    Setup {
        content: Content::Tokens,
        seed,
        outputs_known: true,
    }
}

fn blocks(seed: u32, block_tokens: u32) -> Setup {
    Setup {
        content: Content::Blocks { block_tokens },
        ..tokens(seed)
    }
}

fn each(mut check: impl FnMut(&'static Family, &'static [(&'static str, &'static str)])) {
    for family in FAMILIES {
        check(family, small(family.name));
    }
}

fn hints(workload: &Workload, index: usize) -> Hints {
    *workload.hints(index).unwrap()
}

#[test]
fn the_seed_decides_every_byte() {
    each(|family, said| {
        let bytes = |seed| std::fs::read(make(family, said, &blocks(seed, 16)).path).unwrap();
        assert_eq!(bytes(1), bytes(1), "{}", family.name);
        assert_ne!(bytes(1), bytes(2), "{}", family.name);
        // Threads of the process do not matter either: the generator has one.
        let others = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..3).map(|_| scope.spawn(|| bytes(1))).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(
            others.iter().all(|other| *other == bytes(1)),
            "{}",
            family.name
        );
    });
}

#[test]
fn tokens_and_blocks_tell_the_same() {
    each(|family, said| {
        for block_tokens in [1, 16, 100] {
            let as_blocks = make(family, said, &blocks(3, block_tokens)).load(block_tokens);
            let as_tokens = make(family, said, &tokens(3)).load(block_tokens);
            assert_eq!(
                as_blocks.requests(),
                as_tokens.requests(),
                "{} {block_tokens}",
                family.name
            );
            assert_eq!(
                as_blocks.arena(),
                as_tokens.arena(),
                "{} {block_tokens}",
                family.name
            );
        }
    });
}

#[test]
fn two_seeds_share_no_two_tokens_and_no_block() {
    each(|family, said| {
        let heads = |seed| -> BTreeSet<Vec<u32>> {
            let prompts = make(family, said, &tokens(seed)).prompts().into_iter();
            prompts
                .filter(|prompt| prompt.len() > 1)
                .map(|prompt| prompt[..2].to_vec())
                .collect()
        };
        assert!(heads(1).is_disjoint(&heads(2)), "{}", family.name);
        let ids = |seed: u32| {
            let made = make(family, said, &blocks(seed, 4));
            let mut reader = TraceReader::open(&made.path, None).unwrap();
            let mut ids = BTreeSet::new();
            while let Some(row) = reader.next_row().unwrap() {
                let Body::Blocks { prompt, output } = row.body else {
                    panic!("a block trace");
                };
                ids.extend(
                    prompt
                        .iter()
                        .chain(output.iter().flat_map(|output| output.iter()))
                        .copied(),
                );
            }
            ids
        };
        assert!(ids(1).is_disjoint(&ids(2)), "{}", family.name);
    });
}

#[test]
fn steps_follow_each_other_and_parents_come_first() {
    each(|family, said| {
        let made = make(family, said, &tokens(5));
        let workload = made.load(16);
        assert_eq!(workload.requests().len() as u64, made.requests);
        let mut next_step = BTreeMap::new();
        for (index, request) in workload.requests().iter().enumerate() {
            assert_eq!(request.request_id, index as u64);
            let step = next_step.entry(request.session_id).or_insert(0);
            assert_eq!(request.step, *step, "{} request {index}", family.name);
            *step += 1;
            if let Some(parent) = request.parent_request {
                let parent = &workload.requests()[parent as usize];
                assert_eq!(parent.session_id, request.session_id);
                assert!(
                    parent.arrival_us <= request.arrival_us && parent.step < request.step,
                    "{}",
                    family.name
                );
            } else {
                assert!(
                    request.step == 0 || family.name == "fanout" || family.name == "mixture",
                    "{}",
                    family.name
                );
            }
        }
        assert!(next_step.len() > 3, "{}", family.name);
    });
}

/// With blocks of one token a path is exactly what a later request can read.
#[test]
fn declared_hints_are_true() {
    each(|family, said| {
        let workload = make(family, said, &tokens(7)).load(1);
        let requests = workload.requests();
        for (index, request) in requests.iter().enumerate() {
            let declared = hints(&workload, index);
            let path = workload.path(request);
            let reads = |later: &&Request| {
                let prompt = &workload.path(later)[..later.prompt_blocks as usize];
                path.is_empty() || prompt.get(path.len() - 1) == path.last()
            };
            let later = &requests[index + 1..];
            let same = later
                .iter()
                .filter(|other| other.session_id == request.session_id);
            assert_eq!(
                declared.remaining_uses,
                Some(later.iter().filter(reads).count() as u32),
                "{} request {index}",
                family.name
            );
            let mut again = same.filter(|other| other.kind == request.kind);
            let steps = again.next().map(|other| other.step - request.step);
            assert_eq!(
                declared.steps_to_next, steps,
                "{} request {index}",
                family.name
            );
        }
    });
}

/// Requests share what their templates declare; no two requests of different sessions share beyond what a family says.
#[test]
fn templates_are_what_requests_share() {
    each(|family, said| {
        let workload = make(family, said, &tokens(9)).load(1);
        let mut templates = BTreeMap::new();
        for (index, request) in workload.requests().iter().enumerate() {
            let declared = hints(&workload, index);
            let prompt = &workload.path(request)[..request.prompt_blocks as usize];
            let template = &prompt[..declared.template_tokens.unwrap() as usize];
            let known = templates
                .entry(declared.template_id.unwrap())
                .or_insert(template);
            assert_eq!(*known, template, "{} request {index}", family.name);
        }
        // A passage, an edited template or a job's instructions are shared beyond; all else is a session's own.
        let beyond = [
            "rag",
            "mixture",
            "version-roll",
            "cron",
            "agent",
            "chat",
            "multi-agent",
        ];
        if beyond.contains(&family.name) {
            return;
        }
        let mut owner = BTreeMap::new();
        for (index, request) in workload.requests().iter().enumerate() {
            let template = hints(&workload, index).template_tokens.unwrap() as usize;
            for block in &workload.path(request)[template..] {
                let session = *owner.entry(*block).or_insert(request.session_id);
                assert_eq!(
                    session, request.session_id,
                    "{} request {index}",
                    family.name
                );
            }
        }
    });
}

fn agent(said: &[(&str, &str)], seed: u32) -> Workload {
    let mut all = small("agent").to_vec();
    all.extend(said);
    make(find("agent").unwrap(), &all, &tokens(seed)).load(1)
}

fn leading(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two sessions share nothing, a template, or a template and a project's notes.
    #[test]
    fn agents_share_templates_and_projects_only(seed in any::<u32>(), context in "keep|window|compact") {
        let lengths = [("template-tokens", "20"), ("project-tokens", "7"), ("context", context.as_str())];
        let workload = agent(&lengths, seed);
        let requests = workload.requests();
        for (index, one) in requests.iter().enumerate() {
            for other in requests[index + 1..].iter().filter(|other| other.session_id != one.session_id) {
                let shared = leading(workload.path(one), workload.path(other));
                prop_assert!([0, 20, 27].contains(&shared), "{shared} tokens");
            }
        }
    }

    /// No prompt is longer than its context; one that asks for a summary has one more answer in it.
    #[test]
    fn contexts_are_never_overfull(seed in any::<u32>(), context in "keep|window|compact") {
        let workload = agent(&[("context", context.as_str()), ("context-tokens", "150"), ("retry", "0")], seed);
        for request in workload.requests() {
            let summarises = request.tool.is_some_and(|tool| workload.tools()[usize::from(tool)] == "summarise");
            let most = if summarises { 150 + 12 } else { 150 };
            prop_assert!(request.prompt_tokens <= most, "{}", request.prompt_tokens);
        }
    }

    /// A step comes after the one before has ended and the tool has answered.
    #[test]
    fn steps_wait_for_each_other(seed in any::<u32>()) {
        let workload = agent(&[("request-seconds", "2"), ("token-seconds", "0.5")], seed);
        let requests = workload.requests();
        for request in requests {
            let Some(parent) = request.parent_request else { continue };
            let before = &requests[parent as usize];
            let busy_us = 2_000_000 + 500_000 * i64::from(before.output_tokens);
            prop_assert!(request.arrival_us >= before.arrival_us + busy_us);
        }
    }
}
