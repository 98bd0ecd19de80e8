//! What every family must keep, and the structure of each.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use params::ParamError;
use proptest::prelude::*;
use tempfile::TempDir;
use trace::{Body, Content, Hints, LoadOptions, Request, TraceReader, Workload, load};
use trace_gen::families::{PRESETS, families, find};
use trace_gen::{Family, GenError, GeneratorContext};

type Settings = &'static [(&'static str, &'static str)];

/// Settings that make a family small: every length about a hundredth of its own.
const SMALL: &[(&str, Settings)] = &[
    ("agent", AGENTS),
    ("chat", AGENTS),
    (
        "fanout",
        &[
            ("sessions", "10"),
            ("template-tokens", "30"),
            ("goal-tokens", "10"),
            ("output-tokens", "uniform(1,9)"),
            ("branch-tokens", "4"),
            ("result-tokens", "exp(6)"),
        ],
    ),
    (
        "mapreduce",
        &[
            ("sessions", "8"),
            ("template-tokens", "20"),
            ("shared-tokens", "50"),
            ("plan-tokens", "uniform(1,9)"),
            ("part-tokens", "12"),
            ("map-output-tokens", "uniform(1,9)"),
            ("output-tokens", "5"),
        ],
    ),
    (
        "multi-agent",
        &[
            ("sessions", "8"),
            ("template-tokens", "30"),
            ("project-tokens", "7"),
            ("goal-tokens", "10"),
            ("task-tokens", "5"),
            ("output-tokens", "uniform(1,9)"),
            ("result-tokens", "5"),
            ("report-tokens", "6"),
        ],
    ),
    (
        "rag",
        &[
            ("sessions", "150"),
            ("template-tokens", "13"),
            ("corpus", "15"),
            ("passage-tokens", "uniform(1,20)"),
            ("passages", "uniform(0,4)"),
            ("question-tokens", "3"),
            ("output-tokens", "3"),
        ],
    ),
    (
        "oneshot",
        &[
            ("sessions", "100"),
            ("template-tokens", "9"),
            ("prompt-tokens", "exp(30)"),
            ("output-tokens", "4"),
        ],
    ),
    (
        "cron",
        &[
            ("sessions", "10"),
            ("template-tokens", "9"),
            ("job-tokens", "30"),
            ("fresh-tokens", "exp(1)"),
            ("output-tokens", "uniform(0,3)"),
            ("firings", "uniform(1,9)"),
        ],
    ),
    (
        "scan",
        &[
            ("sessions", "4"),
            ("template-tokens", "9"),
            ("chunks", "12"),
            ("chunk-tokens", "exp(20)"),
            ("passes", "uniform(1,3)"),
            ("output-tokens", "uniform(1,3)"),
        ],
    ),
    (
        "version-roll",
        &[
            ("sessions", "120"),
            ("template-tokens", "40"),
            ("roll-seconds", "40"),
            ("rollout-seconds", "10"),
            ("prompt-tokens", "5"),
            ("output-tokens", "3"),
        ],
    ),
    (
        "mixture",
        &[
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
    ),
];

/// The two families of growing contexts.
const AGENTS: Settings = &[
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
];

fn small(name: &str) -> Settings {
    let found = SMALL.iter().find(|(family, _)| *family == name);
    found
        .unwrap_or_else(|| panic!("say how the family {name} is made small"))
        .1
}

/// A trace in a folder of its own.
struct Made {
    _folder: TempDir,
    path: PathBuf,
    requests: u64,
}

fn make(family: &'static Family, given: &[(&str, &str)], context: &GeneratorContext) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.parquet");
    let mut params = family.params();
    for (name, value) in given {
        params.set(name, value).unwrap();
    }
    let requests = family.write(&path, &params, context).unwrap();
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

fn tokens(seed: u32) -> GeneratorContext {
    GeneratorContext {
        content: Content::Tokens,
        seed,
        outputs_known: true,
    }
}

fn blocks(seed: u32, block_tokens: u32) -> GeneratorContext {
    GeneratorContext {
        content: Content::Blocks { block_tokens },
        ..tokens(seed)
    }
}

fn each(mut check: impl FnMut(&'static Family, Settings)) {
    for family in families() {
        check(family, small(family.name));
    }
}

fn hints(workload: &Workload, index: usize) -> Hints {
    *workload.hints(index).unwrap()
}

#[test]
fn the_seed_decides_every_byte() {
    each(|family, given| {
        let bytes = |seed| std::fs::read(make(family, given, &blocks(seed, 16)).path).unwrap();
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
    each(|family, given| {
        for block_tokens in [1, 16, 100] {
            let as_blocks = make(family, given, &blocks(3, block_tokens)).load(block_tokens);
            let as_tokens = make(family, given, &tokens(3)).load(block_tokens);
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
    each(|family, given| {
        let heads = |seed| -> BTreeSet<Vec<u32>> {
            let prompts = make(family, given, &tokens(seed)).prompts().into_iter();
            prompts
                .filter(|prompt| prompt.len() > 1)
                .map(|prompt| prompt[..2].to_vec())
                .collect()
        };
        assert!(heads(1).is_disjoint(&heads(2)), "{}", family.name);
        let ids = |seed: u32| {
            let made = make(family, given, &blocks(seed, 4));
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
    each(|family, given| {
        let made = make(family, given, &tokens(5));
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
    each(|family, given| {
        let workload = make(family, given, &tokens(7)).load(1);
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
    each(|family, given| {
        let workload = make(family, given, &tokens(9)).load(1);
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

fn agent(given: &[(&str, &str)], seed: u32) -> Workload {
    let mut all = small("agent").to_vec();
    all.extend(given);
    make(find("agent").unwrap(), &all, &tokens(seed)).load(1)
}

fn leading<T: PartialEq>(one: &[T], other: &[T]) -> usize {
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

/// What an inspection of a ledger-like agent says: prompt tokens submitted, and hits of an unlimited cache.
fn ledger(given: &[(&str, &str)]) -> (u64, u64, u64) {
    let mut all = vec![
        ("sessions", "1"),
        ("apps", "1"),
        ("projects", "1"),
        ("template-tokens", "1500"),
        ("project-tokens", "0"),
        ("goal-tokens", "500"),
        ("steps", "20"),
        ("output-tokens", "80"),
        ("fast-result-tokens", "220"),
        ("slow-result-tokens", "220"),
        ("human-result-tokens", "220"),
        ("retry", "0"),
        ("rewind", "0"),
        ("abandon", "0"),
        ("early-results", "1"),
    ];
    all.extend(given);
    let made = make(find("agent").unwrap(), &all, &tokens(0));
    let summary = trace_import::inspect::inspect(&made.path, Some(1)).unwrap();
    (
        summary.requests,
        summary.prompt_tokens,
        summary.infinite_cache_hit_tokens,
    )
}

/// The course's ledger, 20 steps from 2,000 tokens of which each adds 300, under each context policy. A step that goes on
/// finds the prompt before it and 79 of the 80 tokens that it put out.
#[test]
fn the_ledger_of_each_context_policy() {
    let keep = ("context", "keep");
    // 20 prompts, 4,850 long on average; each but the first finds the one before and 79 tokens.
    assert_eq!(
        ledger(&[keep, ("context-tokens", "100000")]),
        (20, 97_000, 97_000 - 7_700 + 19 * 79)
    );
    // Seven prompts from 2,000 to 3,800; the eighth would have 4,100.
    assert_eq!(
        ledger(&[keep, ("context-tokens", "4000")]),
        (7, 20_300, 20_300 - 3_800 + 6 * 79)
    );
    // Then 3,000, 3,300, 3,600, 3,900 in turn: three rounds, and the first of a fourth. Four slides find the 2,000 pinned.
    let window = [
        ("context", "window"),
        ("context-tokens", "4000"),
        ("window-tokens", "3000"),
    ];
    let submitted = 20_300 + 3 * 13_800 + 3_000;
    let found = (20_300 - 3_800) + 3 * (13_800 - 3_900) + 15 * 79 + 4 * 2_000;
    assert_eq!(ledger(&window), (20, submitted, found));
    // Three summaries, of 3,880 and twice 3,800 tokens; after each 1,500 + 500 + 220 tokens, of which 1,500 are found.
    let compact = [
        ("context", "compact"),
        ("context-tokens", "4000"),
        ("summary-tokens", "500"),
    ];
    let round = 2_220 + 2_520 + 2_820 + 3_120 + 3_420 + 3_720;
    let submitted = 20_300 + 2 * round + 2_220 + 3_880 + 2 * 3_800;
    let found =
        (20_300 - 3_800) + 2 * (round - 3_720) + 16 * 79 + (3_800 + 2 * 3_720 + 3 * 79) + 3 * 1_500;
    assert_eq!(ledger(&compact), (23, submitted, found));
}

#[test]
fn presets_repeat_what_their_names_say() {
    for preset in PRESETS
        .iter()
        .filter(|preset| preset.name.starts_with("repeat-"))
    {
        let family = find(preset.family).unwrap();
        let expected: f64 = preset.name["repeat-".len()..].parse().unwrap();
        for seed in 0..3 {
            let made = make(family, preset.settings, &blocks(seed, 16));
            let summary = trace_import::inspect::inspect(&made.path, None).unwrap();
            let found = 100.0 * summary.infinite_cache_token_hit_rate.unwrap();
            assert!(
                (found - expected).abs() < 1.5,
                "{} seed {seed}: {found}",
                preset.name
            );
        }
    }
}

fn kind<'a>(workload: &'a Workload, request: &Request) -> &'a str {
    &workload.kinds()[usize::from(request.kind)]
}

/// The small form of a family with more given, with blocks of a token.
fn structure(name: &str, given: &[(&str, &str)]) -> Workload {
    let mut all = small(name).to_vec();
    all.extend(given);
    make(find(name).unwrap(), &all, &tokens(11)).load(1)
}

fn by_session(workload: &Workload) -> Vec<Vec<&Request>> {
    let mut sessions: BTreeMap<u64, Vec<&Request>> = BTreeMap::new();
    for request in workload.requests() {
        sessions
            .entry(request.session_id)
            .or_default()
            .push(request);
    }
    sessions.into_values().collect()
}

#[test]
fn sixteen_maps_read_the_plan_and_the_reduce_waits_for_the_last() {
    let workload = structure("mapreduce", &[]);
    for session in by_session(&workload) {
        let kinds: Vec<_> = session
            .iter()
            .map(|request| kind(&workload, request))
            .collect();
        assert_eq!((kinds.len(), kinds[0], kinds[17]), (18, "plan", "reduce"));
        assert!(kinds[1..17].iter().all(|kind| kind.starts_with("map-")));
        let plan = workload.path(session[0]);
        assert!(
            session[1..]
                .iter()
                .all(|request| workload.path(request).starts_with(plan))
        );
        assert_eq!(
            hints(&workload, session[0].request_id as usize).remaining_uses,
            Some(17)
        );
        let busy = |request: &Request| {
            request.arrival_us + 300_000 + 15_000 * i64::from(request.output_tokens)
        };
        let last = session[1..17]
            .iter()
            .map(|request| busy(request))
            .max()
            .unwrap();
        assert_eq!(session[17].arrival_us, last);
    }
}

#[test]
fn branches_go_off_one_parent() {
    let workload = structure("fanout", &[("mode", "best-of"), ("branches", "5")]);
    for session in by_session(&workload) {
        for round in session.chunks(5) {
            let prompt =
                |request: &Request| &workload.path(request)[..request.prompt_blocks as usize];
            assert!(round.iter().all(|other| prompt(other) == prompt(round[0])
                && other.arrival_us == round[0].arrival_us));
            let ends: BTreeSet<_> = round.iter().map(|request| workload.path(request)).collect();
            // Outputs of one token leave no KV behind that could tell them apart.
            assert!(
                ends.len()
                    + round
                        .iter()
                        .filter(|request| request.output_tokens == 1)
                        .count()
                    >= 5
            );
        }
    }
    let workload = structure("fanout", &[("mode", "calls"), ("branches", "3")]);
    for session in by_session(&workload) {
        for round in session.chunks(4) {
            let parent = workload.path(round[0]);
            assert!(
                round[1..]
                    .iter()
                    .all(|branch| workload.path(branch).starts_with(parent))
            );
            assert!(
                round[1..]
                    .iter()
                    .all(|branch| branch.parent_request == Some(round[0].request_id))
            );
        }
    }
}

#[test]
fn a_lead_waits_for_its_workers() {
    let workload = structure("multi-agent", &[]);
    let mut waits = Vec::new();
    for session in by_session(&workload) {
        assert_eq!(
            (
                kind(&workload, session[0]),
                kind(&workload, session[session.len() - 1])
            ),
            ("lead", "lead")
        );
        let leads: Vec<_> = session
            .iter()
            .filter(|request| kind(&workload, request) == "lead")
            .collect();
        for pair in leads.windows(2) {
            assert!(workload.path(pair[1]).starts_with(workload.path(pair[0])));
            waits.push(
                hints(&workload, pair[0].request_id as usize)
                    .steps_to_next
                    .unwrap(),
            );
            let workers = &session[pair[0].step as usize + 1..pair[1].step as usize];
            assert!(
                workers
                    .iter()
                    .all(|worker| worker.arrival_us <= pair[1].arrival_us)
            );
        }
    }
    assert!(waits.iter().all(|wait| *wait > 1));
}

#[test]
fn passages_share_by_their_order() {
    let depth = |order| -> u64 {
        let workload = structure("rag", &[("order", order), ("sessions", "400")]);
        workload
            .requests()
            .iter()
            .map(|request| u64::from(request.seen_blocks))
            .sum()
    };
    let (retrieved, fixed) = (depth("retrieved"), depth("fixed"));
    assert!(
        fixed > retrieved + retrieved / 20,
        "{fixed} and {retrieved}"
    );
}

#[test]
fn a_second_pass_reads_the_same_chunks_again() {
    let workload = structure("scan", &[("passes", "2"), ("chunks", "12"), ("apps", "1")]);
    for session in by_session(&workload) {
        let (first, second) = session.split_at(12);
        for (once, again) in first.iter().zip(second) {
            assert_eq!(once.prompt_tokens, again.prompt_tokens);
            assert!(again.seen_blocks >= again.prompt_blocks);
        }
        assert!(first[1..].iter().all(|request| request.seen_blocks == 9));
    }
}

#[test]
fn versions_roll_out_and_the_old_ones_die() {
    let workload = structure("version-roll", &[]);
    let (roll_us, rollout_us) = (40_000_000, 10_000_000);
    for (index, request) in workload.requests().iter().enumerate() {
        let template = hints(&workload, index).template_id.unwrap();
        let present = (request.arrival_us / roll_us) as u64;
        let old = request.arrival_us % roll_us < rollout_us;
        assert!(
            template == present || (old && template + 1 == present),
            "{template} at {present}"
        );
    }
}

#[test]
fn jobs_fire_on_time() {
    let workload = structure(
        "cron",
        &[
            ("period-seconds", "60"),
            ("jitter-seconds", "uniform(0,2)"),
            ("firings", "6"),
        ],
    );
    for session in by_session(&workload) {
        assert_eq!(session.len(), 6);
        for (firing, request) in session.iter().enumerate() {
            let late = request.arrival_us - session[0].arrival_us - 60_000_000 * firing as i64;
            assert!((0..=2_000_000).contains(&late));
        }
    }
}

#[test]
fn tenants_share_nothing_and_parts_keep_their_weights() {
    let workload = structure(
        "mixture",
        &[
            ("sessions", "600"),
            ("tenants", "3"),
            ("parts", "agent=1,oneshot=3,rag=2,cron=1,fanout=1"),
        ],
    );
    let mut owner = BTreeMap::new();
    let mut oneshots = 0;
    for request in workload.requests() {
        oneshots += usize::from(kind(&workload, request) == "oneshot");
        for block in workload.path(request) {
            assert_eq!(
                *owner.entry(*block).or_insert(request.tenant),
                request.tenant
            );
        }
    }
    assert_eq!(owner.into_values().collect::<BTreeSet<_>>().len(), 3);
    assert!(
        (oneshots as f64 / 600.0 - 3.0 / 8.0).abs() < 0.06,
        "{oneshots}"
    );
}

/// Everybody of a closed loop has one session at a time.
#[test]
fn a_closed_loop_waits_for_its_users() {
    let workload = agent(
        &[
            ("arrivals", "closed"),
            ("users", "3"),
            ("sessions", "30"),
            ("human-seconds", "5"),
        ],
        4,
    );
    let mut ends: Vec<(i64, i64)> = Vec::new();
    for session in by_session(&workload) {
        ends.push((session[0].arrival_us, session[session.len() - 1].arrival_us));
    }
    assert_eq!(ends.len(), 30);
    for (start, _) in &ends {
        let together = ends
            .iter()
            .filter(|(begin, end)| begin <= start && start <= end)
            .count();
        assert!(together <= 3, "{together} at once");
    }
}

/// Family, parameters, and what is wrong with them.
const WRONG: &[(&str, Settings, &str)] = &[
    (
        "agent",
        &[("step", "3")],
        "there is no parameter `step`; did you mean `steps`? Valid ones: sessions, arrivals",
    ),
    (
        "agent",
        &[("steps", "many")],
        "`steps` is a distribution of counts (`many` is no distribution), not `many`",
    ),
    (
        "agent",
        &[("retry", "1")],
        "`retry` is a number from 0 to 0.9, not `1`",
    ),
    (
        "agent",
        &[("context", "none")],
        "`context` is one of keep, window, compact, not `none`",
    ),
    (
        "agent",
        &[("fast-share", "0.9"), ("slow-share", "0.2")],
        "slow-share is 0.2; expected at most what",
    ),
    (
        "oneshot",
        &[("template-tokens", "4294967296")],
        "4294967296 in it is more than",
    ),
    (
        "oneshot",
        &[
            ("sessions", "3"),
            ("template-tokens", "60000000"),
            ("prompt-tokens", "60000000"),
        ],
        "a prompt of more than 67108864 tokens",
    ),
    ("scan", &[("chunks", "4e9")], "more than 1000000"),
    ("mixture", &[("parts", "agent")], "parts is `agent`"),
    (
        "mixture",
        &[("parts", "mixture=1")],
        "no family of a mixture `mixture`",
    ),
    (
        "mixture",
        &[("parts", "nobody=1")],
        "no family of a mixture `nobody`",
    ),
    ("mixture", &[("set", "chat.none=1")], "no parameter `none`"),
    (
        "mixture",
        &[("set", "ledger.steps=1")],
        "set is `ledger.steps=1`",
    ),
];

#[test]
fn wrong_parameters_are_named() {
    let fault = |name: &str, given: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        let family = find(name).unwrap();
        let mut params = family.params();
        let outcome: Result<(), ParamError> = given
            .iter()
            .try_for_each(|(name, value)| params.set(name, value));
        let outcome = outcome
            .map_err(GenError::from)
            .and_then(|()| family.write(&folder.path().join("x"), &params, &tokens(0)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        outcome.unwrap_err().to_string()
    };
    for (name, given, expected) in WRONG {
        let found = fault(name, given);
        assert!(found.contains(expected), "{found}");
    }
}

/// A trace made with known parameters gives them back.
#[test]
fn a_fit_finds_what_was_put_in() {
    let made = make(
        find("agent").unwrap(),
        &[
            ("sessions", "300"),
            ("apps", "3"),
            ("app-zipf", "1"),
            ("template-tokens", "1600"),
            ("projects", "2"),
            ("project-tokens", "320"),
            ("goal-tokens", "400"),
            ("steps", "geometric(9)"),
            ("output-tokens", "100"),
            ("fast-share", "0.7"),
            ("slow-share", "0.2"),
            ("fast-seconds", "2"),
            ("slow-seconds", "60"),
            ("human-seconds", "400"),
            ("fast-result-tokens", "200"),
            ("slow-result-tokens", "500"),
            ("human-result-tokens", "300"),
            ("retry", "0.1"),
            ("rewind", "0"),
            ("abandon", "0"),
            ("early-results", "1"),
            ("late-humans", "1"),
            ("request-seconds", "0"),
            ("token-seconds", "0"),
            ("context-tokens", "100000"),
        ],
        &blocks(1, 16),
    );
    let plan = trace_gen::fit::fit(&made.path, None, false).unwrap();
    assert_eq!(plan.part.len(), 1, "sessions share templates");
    let found = |name: &str| plan.part[0].parameters[name].clone();
    let number = |name: &str| found(name).parse::<f64>().unwrap();
    assert_eq!(
        (found("apps"), found("projects"), found("sessions")),
        ("3".into(), "2".into(), "300".into())
    );
    assert_eq!(
        (found("template-tokens"), found("project-tokens")),
        ("1600".into(), "320".into())
    );
    assert_eq!(
        (found("output-tokens"), found("slow-result-tokens")),
        ("100".into(), "500".into())
    );
    assert!((number("session-gap") - 10.0).abs() < 2.0 && (number("app-zipf") - 1.0).abs() < 0.3);
    assert!((number("fast-share") - 0.7).abs() < 0.05 && (number("slow-share") - 0.2).abs() < 0.05);
    assert!((number("retry") - 0.1).abs() < 0.03 && number("rewind") < 0.001);
    let again = make_plan(&plan, &made);
    let steps = |workload: &Workload| workload.requests().len() as f64 / 300.0;
    assert!((steps(&again) / steps(&made.load(16)) - 1.0).abs() < 0.15);
}

fn make_plan(plan: &trace_gen::plan::Plan, beside: &Made) -> Workload {
    let path = beside.path.with_file_name("again.parquet");
    plan.write(&path, &blocks(2, 16)).unwrap();
    load(&path, &LoadOptions::default()).unwrap().workload
}
