//! Sessions of agents.
//!
//! Several applications, of Zipf popularity, each with a system prompt and tool schemas that all its sessions share, and
//! each with several projects, likewise popular, whose notes all sessions on the project share. A session begins with a
//! user's goal and goes step by step: the model thinks and calls a tool, the tool's result joins
//! the context, and the next step's prompt repeats all of it. Tools are fast, slow, or a human who has to answer. A
//! context that is full is summarised: what is shared stays, the rest is replaced. Between the sessions come
//! checks, which send the same prompt of an application again and again and get one token as verdict, and single
//! requests that share nothing with anybody. Sessions start as a Poisson process, and so do these.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal, Zipf};
use trace::{Content, Meta, Provenance, Row, TraceWriter};

use crate::error::GenError;
use crate::text::{Fresh, Text};

/// The parameters of an agent workload.
#[derive(Clone, Debug)]
pub struct Options {
    /// Sessions of agents.
    pub sessions: u32,
    /// Applications.
    pub apps: u32,
    /// Projects of an application.
    pub projects_per_app: u32,
    /// Exponent of the Zipf popularity of applications and of projects.
    pub zipf_exponent: f64,
    /// Seconds between the starts of two sessions, on average.
    pub session_gap_seconds: f64,
    /// Recurring checks, for every session.
    pub checks_per_session: f64,
    /// Single requests that share nothing, for every session.
    pub oneshots_per_session: f64,
    /// Steps of a session, on average (geometric, so at least 1).
    pub mean_steps: f64,
    /// Prompt tokens at which a context is summarised.
    pub context_tokens: u32,
    /// Token ids instead of block ids.
    pub tokens: bool,
    /// Tokens of a block, where block ids are written.
    pub block_tokens: u32,
    /// Seed of everything drawn.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sessions: 100,
            apps: 6,
            projects_per_app: 5,
            zipf_exponent: 1.1,
            session_gap_seconds: 10.0,
            checks_per_session: 6.0,
            oneshots_per_session: 0.5,
            mean_steps: 14.0,
            context_tokens: 28_000,
            tokens: false,
            block_tokens: 16,
            seed: 0,
        }
    }
}

/// A tool of an agent: how long it takes and how much it says.
struct Tool {
    name: &'static str,
    /// Share of the calls.
    share: f64,
    median_seconds: f64,
    median_result_tokens: f64,
}

/// A mixture of fast tools, slow tools, and waiting for a human.
const TOOLS: [Tool; 5] = [
    Tool {
        name: "read_file",
        share: 0.40,
        median_seconds: 0.2,
        median_result_tokens: 600.0,
    },
    Tool {
        name: "search",
        share: 0.25,
        median_seconds: 1.0,
        median_result_tokens: 300.0,
    },
    Tool {
        name: "edit_file",
        share: 0.15,
        median_seconds: 0.2,
        median_result_tokens: 60.0,
    },
    Tool {
        name: "run_tests",
        share: 0.14,
        median_seconds: 25.0,
        median_result_tokens: 500.0,
    },
    Tool {
        name: "ask_user",
        share: 0.06,
        median_seconds: 120.0,
        median_result_tokens: 40.0,
    },
];

/// Spread of the log-normal lengths and times: a tenth is 3.6 times the median or more.
const SIGMA: f64 = 1.0;

const GOAL_TOKENS: f64 = 250.0;
const OUTPUT_TOKENS: f64 = 120.0;
const SUMMARY_TOKENS: f64 = 900.0;
const ONESHOT_TOKENS: f64 = 3_000.0;
const CHECK_TOKENS: std::ops::Range<u32> = 6_000..12_000;
const VERDICT_TOKENS: u32 = 1;
/// No single part of a context is longer: tools cut their output.
const LONGEST_PART_TOKENS: f64 = 4_000.0;
/// System prompt and tool schemas of an application.
const PREFIX_TOKENS: std::ops::Range<u32> = 1_500..6_000;
/// The notes of a project: instructions, a map of its files.
const PROJECT_TOKENS: std::ops::Range<u32> = 2_000..8_000;
/// From a request's arrival to its end: a rough engine, so that steps depend on each other in time.
const SECONDS_PER_OUTPUT_TOKEN: f64 = 0.015;
const SECONDS_PER_REQUEST: f64 = 0.3;

/// Writes an agent workload to `out`; returns the number of requests.
///
/// # Errors
/// Where a parameter is out of range or the output cannot be written.
pub fn write(out: &Path, options: &Options) -> Result<u64, GenError> {
    check(options)?;
    let content = match options.tokens {
        true => Content::Tokens,
        false => Content::Blocks {
            block_tokens: options.block_tokens,
        },
    };
    let meta = Meta {
        content,
        provenance: Provenance {
            name: Some("agent".to_owned()),
            generator: Some("trace-gen agent".to_owned()),
            seed: Some(options.seed.to_string()),
            ..Provenance::default()
        },
    };
    let mut writer = TraceWriter::create(out, &meta)?;
    let mut world = World::new(options, content)?;
    while let Some(event) = world.events.pop() {
        world.handle(event.0, &mut writer)?;
    }
    Ok(writer.finish()?)
}

fn check(options: &Options) -> Result<(), GenError> {
    let parameter = |name, found: String, expected: &str| {
        Err(GenError::Parameter {
            name,
            found,
            expected: expected.to_owned(),
        })
    };
    let positive = [
        (
            "mean gap of session starts",
            options.session_gap_seconds,
            1e-6,
        ),
        ("Zipf exponent", options.zipf_exponent, 0.0),
        ("checks a session", options.checks_per_session, 0.0),
        (
            "single requests a session",
            options.oneshots_per_session,
            0.0,
        ),
        ("mean steps", options.mean_steps, 1.0),
    ];
    for (name, value, least) in positive {
        if !(least..=1e6).contains(&value) {
            return parameter(name, value.to_string(), &format!("{least} to 1,000,000"));
        }
    }
    let least_context = PREFIX_TOKENS.end + PROJECT_TOKENS.end + 2 * LONGEST_PART_TOKENS as u32;
    if options.apps == 0 || options.projects_per_app == 0 {
        return parameter(
            "number of applications or projects",
            "0".to_owned(),
            "at least 1",
        );
    }
    if options.block_tokens == 0 {
        return parameter("block size", "0 tokens".to_owned(), "at least 1");
    }
    if !(least_context..=1 << 24).contains(&options.context_tokens) {
        let expected = format!("{least_context} to {}", 1 << 24);
        return parameter(
            "context",
            format!("{} tokens", options.context_tokens),
            &expected,
        );
    }
    Ok(())
}

/// What happens next, ordered by time, then by the order in which it was planned.
#[derive(Debug)]
struct Event {
    at_us: i64,
    number: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A session starts, and the next start is drawn.
    Start,
    /// A check comes, and the next one is drawn.
    Check,
    /// A single request comes, and the next one is drawn.
    Oneshot,
    /// A session takes its next step.
    Step(Box<Session>),
}

#[derive(Debug)]
struct Session {
    session_id: u64,
    context: Text,
    prefix_tokens: u32,
    step: u32,
    steps: u32,
    parent_request: Option<u64>,
}

struct App {
    /// What sessions on each of its projects begin with: system prompt and tools, then the project's notes.
    projects: Vec<Text>,
    /// The prompt of its recurring check: system prompt and tools, then what is checked.
    check: Text,
}

struct World<'a> {
    options: &'a Options,
    rng: ChaCha8Rng,
    fresh: Fresh,
    apps: Vec<App>,
    app_popularity: Zipf<f64>,
    project_popularity: Zipf<f64>,
    events: BinaryHeap<Reverse<Event>>,
    planned: u64,
    started: u32,
    next_session: u64,
    next_request: u64,
}

impl<'a> World<'a> {
    fn new(options: &'a Options, content: Content) -> Result<Self, GenError> {
        let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
        let mut fresh = Fresh::new(content, options.seed);
        let apps = (0..options.apps)
            .map(|_| App::new(options, &mut rng, &mut fresh))
            .collect();
        let popularity = |of: u32| {
            Zipf::new(f64::from(of), options.zipf_exponent)
                .map_err(|fault| invalid("Zipf exponent", options.zipf_exponent, &fault))
        };
        let mut world = Self {
            options,
            rng,
            fresh,
            apps,
            app_popularity: popularity(options.apps)?,
            project_popularity: popularity(options.projects_per_app)?,
            events: BinaryHeap::new(),
            planned: 0,
            started: 0,
            next_session: 0,
            next_request: 0,
        };
        if options.sessions > 0 {
            world.plan(0, What::Start);
            world.plan_next(0, options.checks_per_session, What::Check);
            world.plan_next(0, options.oneshots_per_session, What::Oneshot);
        }
        Ok(world)
    }

    fn plan(&mut self, at_us: i64, what: What) {
        let number = self.planned;
        self.planned += 1;
        self.events.push(Reverse(Event {
            at_us,
            number,
            what,
        }));
    }

    /// Plans the next of something that comes so many times for every session (Poisson), until the last session has
    /// started.
    fn plan_next(&mut self, now_us: i64, per_session: f64, what: What) {
        if per_session > 0.0 && self.started < self.options.sessions {
            let gap: f64 = Exp1.sample(&mut self.rng);
            let mean_seconds = self.options.session_gap_seconds / per_session;
            self.plan(after(now_us, gap * mean_seconds), what);
        }
    }

    fn handle(&mut self, event: Event, writer: &mut TraceWriter) -> Result<(), GenError> {
        match event.what {
            What::Start => self.start(event.at_us),
            What::Check => self.check(event.at_us, writer)?,
            What::Oneshot => self.oneshot(event.at_us, writer)?,
            What::Step(session) => self.step(event.at_us, session, writer)?,
        }
        Ok(())
    }

    fn start(&mut self, now_us: i64) {
        self.started += 1;
        self.plan_next(now_us, 1.0, What::Start);
        let project = self.project_popularity.sample(&mut self.rng) as usize - 1;
        let mut context = self.app().projects[project].clone();
        let prefix_tokens = context.len_tokens();
        let goal = self.length(GOAL_TOKENS);
        context.grow(goal, &mut self.fresh);
        let session = Box::new(Session {
            session_id: self.take_session_id(),
            context,
            prefix_tokens,
            step: 0,
            steps: self.steps(),
            parent_request: None,
        });
        self.plan(now_us, What::Step(session));
    }

    /// A check: of each application always the same prompt.
    fn check(&mut self, now_us: i64, writer: &mut TraceWriter) -> Result<(), GenError> {
        self.plan_next(now_us, self.options.checks_per_session, What::Check);
        let mut text = self.app().check.clone();
        text.grow(VERDICT_TOKENS, &mut self.fresh);
        self.write_single("check", now_us, &text, VERDICT_TOKENS, writer)
    }

    fn oneshot(&mut self, now_us: i64, writer: &mut TraceWriter) -> Result<(), GenError> {
        self.plan_next(now_us, self.options.oneshots_per_session, What::Oneshot);
        let mut text = self.fresh.empty_text();
        let (prompt, output) = (self.length(ONESHOT_TOKENS), self.length(OUTPUT_TOKENS));
        text.grow(prompt, &mut self.fresh);
        text.grow(output, &mut self.fresh);
        self.write_single("oneshot", now_us, &text, output, writer)
    }

    /// Writes a request that is a session of its own.
    fn write_single(
        &mut self,
        kind: &'static str,
        now_us: i64,
        text: &Text,
        output_tokens: u32,
        writer: &mut TraceWriter,
    ) -> Result<(), GenError> {
        Ok(writer.write(&Row {
            request_id: self.take_request_id(),
            arrival_us: now_us,
            session_id: self.take_session_id(),
            kind: Cow::Borrowed(kind),
            prompt_tokens: text.len_tokens() - output_tokens,
            output_tokens,
            body: text.body(output_tokens),
            ..Row::default()
        })?)
    }

    fn step(
        &mut self,
        now_us: i64,
        mut session: Box<Session>,
        writer: &mut TraceWriter,
    ) -> Result<(), GenError> {
        let prompt = session.context.len_tokens();
        let output = self.length(OUTPUT_TOKENS);
        session.context.grow(output, &mut self.fresh);
        let last = session.step + 1 == session.steps;
        let tool = (!last).then(|| self.tool());
        let request_id = self.take_request_id();
        writer.write(&Row {
            request_id,
            arrival_us: now_us,
            session_id: session.session_id,
            step: session.step,
            parent_request: session.parent_request,
            kind: Cow::Borrowed(if session.step == 0 { "goal" } else { "step" }),
            tool: tool.map(|tool| Cow::Borrowed(tool.name)),
            prompt_tokens: prompt,
            output_tokens: output,
            body: session.context.body(output),
            ..Row::default()
        })?;
        let Some(tool) = tool else {
            return Ok(());
        };
        session.step += 1;
        session.parent_request = Some(request_id);
        let result = self.length(tool.median_result_tokens);
        self.extend(&mut session, result);
        let busy = SECONDS_PER_REQUEST + SECONDS_PER_OUTPUT_TOKEN * f64::from(output);
        let waiting = self.spread(tool.median_seconds);
        self.plan(after(now_us, busy + waiting), What::Step(session));
        Ok(())
    }

    /// Adds a tool's result; a context that it would fill is summarised first.
    fn extend(&mut self, session: &mut Session, result: u32) {
        let longest_output = LONGEST_PART_TOKENS as u32;
        if session.context.len_tokens() + result + longest_output > self.options.context_tokens {
            session.context.truncate(session.prefix_tokens);
            let summary = self.length(SUMMARY_TOKENS);
            session.context.grow(summary, &mut self.fresh);
        }
        session.context.grow(result, &mut self.fresh);
    }

    /// An application, by popularity.
    fn app(&mut self) -> &App {
        let app = self.app_popularity.sample(&mut self.rng) as usize - 1;
        &self.apps[app]
    }

    fn tool(&mut self) -> &'static Tool {
        let mut at = self.rng.random_range(0.0..1.0);
        TOOLS
            .iter()
            .find(|tool| {
                at -= tool.share;
                at < 0.0
            })
            .unwrap_or(&TOOLS[0])
    }

    /// Geometric steps: after each the session ends with the same chance.
    fn steps(&mut self) -> u32 {
        let ends = 1.0 / self.options.mean_steps;
        let mut steps = 1;
        while !self.rng.random_bool(ends) {
            steps += 1;
        }
        steps
    }

    fn length(&mut self, median_tokens: f64) -> u32 {
        self.spread(median_tokens).clamp(1.0, LONGEST_PART_TOKENS) as u32
    }

    /// A log-normal value around `median`.
    fn spread(&mut self, median: f64) -> f64 {
        let normal: f64 = StandardNormal.sample(&mut self.rng);
        median * (SIGMA * normal).exp()
    }

    fn take_session_id(&mut self) -> u64 {
        self.next_session += 1;
        self.next_session - 1
    }

    fn take_request_id(&mut self) -> u64 {
        self.next_request += 1;
        self.next_request - 1
    }
}

impl App {
    fn new(options: &Options, rng: &mut ChaCha8Rng, fresh: &mut Fresh) -> Self {
        let mut prefix = fresh.empty_text();
        prefix.grow(rng.random_range(PREFIX_TOKENS), fresh);
        let mut beginning = |tokens| {
            let mut text = prefix.clone();
            text.grow(rng.random_range(tokens), fresh);
            text
        };
        Self {
            check: beginning(CHECK_TOKENS),
            projects: (0..options.projects_per_app)
                .map(|_| beginning(PROJECT_TOKENS))
                .collect(),
        }
    }
}

fn invalid(name: &'static str, value: f64, fault: &dyn std::fmt::Display) -> GenError {
    GenError::Parameter {
        name,
        found: value.to_string(),
        expected: fault.to_string(),
    }
}

fn after(now_us: i64, seconds: f64) -> i64 {
    now_us + (seconds * 1e6) as i64
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_us, self.number).cmp(&(other.at_us, other.number))
    }
}
