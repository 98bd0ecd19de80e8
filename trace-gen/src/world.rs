//! Sessions side by side: every one takes its next turn when its time has come, and rows are written as they arrive.
//!
//! Only sessions under way are in memory. Every session draws from a stream of its own, so what it does depends on the
//! seed and its number, not on the others. There is one thread, so the bytes do not depend on how many there are.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use trace::synthetic::{FreshIds, Text};
use trace::{Hints, Row, TraceWriter};

use crate::arrivals::Arrivals;
use crate::context::GeneratorContext;
use crate::error::GenError;

/// One running family: it starts sessions.
pub(crate) trait Source {
    /// The session that starts at `start.at_us`.
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError>;
}

/// What a new session is given.
pub(crate) struct Start {
    pub(crate) at_us: i64,
    pub(crate) session_id: u64,
    /// Its own stream.
    pub(crate) rng: ChaCha8Rng,
}

/// A session under way.
pub(crate) trait Session {
    /// Takes the turn that is due at `now_us`.
    fn turn(&mut self, now_us: i64, out: &mut Out) -> Result<Next, GenError>;
}

/// A session of a tenant.
pub(crate) struct Tenanted {
    pub(crate) session: Box<dyn Session>,
    pub(crate) tenant: u32,
}

impl Session for Tenanted {
    fn turn(&mut self, now_us: i64, out: &mut Out) -> Result<Next, GenError> {
        let before = std::mem::replace(&mut out.tenant, self.tenant);
        let next = self.session.turn(now_us, out);
        out.tenant = before;
        next
    }
}

/// A source whose sessions are a tenant's.
pub(crate) struct OfTenant {
    pub(crate) source: Box<dyn Source>,
    pub(crate) tenant: u32,
}

impl Source for OfTenant {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        Ok(Box::new(Tenanted {
            session: self.source.begin(start, out)?,
            tenant: self.tenant,
        }))
    }
}

/// When a session goes on.
pub(crate) enum Next {
    /// Its next turn.
    Turn(i64),
    /// It is over, at this time.
    Over(i64),
}

/// A request to write.
pub(crate) struct Ask<'a> {
    pub(crate) at_us: i64,
    pub(crate) session_id: u64,
    pub(crate) step: u32,
    pub(crate) parent_request: Option<u64>,
    pub(crate) kind: &'a str,
    pub(crate) tool: Option<&'a str>,
    /// The prompt, then the output.
    pub(crate) text: &'a Text,
    pub(crate) output_tokens: u32,
    pub(crate) hints: Hints,
}

/// Where requests go.
pub(crate) struct Out {
    pub(crate) fresh: FreshIds,
    writer: TraceWriter,
    tenant: u32,
    outputs_known: bool,
    requests: u64,
    templates: u64,
}

impl Out {
    pub(crate) fn new(writer: TraceWriter, context: &GeneratorContext) -> Self {
        Self {
            fresh: FreshIds::new(context.content, context.seed),
            writer,
            tenant: 0,
            outputs_known: context.outputs_known,
            requests: 0,
            templates: 0,
        }
    }

    /// The identity of a new template.
    pub(crate) fn template_id(&mut self) -> u64 {
        self.templates += 1;
        self.templates - 1
    }

    /// Writes a request; returns its id.
    pub(crate) fn write(&mut self, ask: &Ask<'_>) -> Result<u64, GenError> {
        // A text that could not be made is shorter than its lengths say.
        self.fresh.check()?;
        let request_id = self.requests;
        self.requests += 1;
        self.writer.write(&Row {
            request_id,
            arrival_us: ask.at_us,
            session_id: ask.session_id,
            step: ask.step,
            parent_request: ask.parent_request,
            kind: Cow::Borrowed(ask.kind),
            tenant: self.tenant,
            tool: ask.tool.map(Cow::Borrowed),
            prompt_tokens: ask.text.len_tokens() - ask.output_tokens,
            output_tokens: ask.output_tokens,
            body: ask.text.body(ask.output_tokens, self.outputs_known),
            hints: ask.hints,
        })?;
        Ok(request_id)
    }
}

/// Sources, and what is due.
pub(crate) struct World {
    seed: u32,
    out: Out,
    sources: Vec<Running>,
    due: BinaryHeap<Reverse<Event>>,
    planned: u64,
    sessions: u64,
}

/// A source, and what it has left to do.
struct Running {
    source: Box<dyn Source>,
    arrivals: Arrivals,
    /// Starts not yet planned.
    left: u32,
    started: u64,
    rng: ChaCha8Rng,
}

/// Ordered by time, then by the order in which it was planned.
struct Event {
    at_us: i64,
    number: u64,
    source: usize,
    /// The session whose turn it is; none: one starts.
    session: Option<Box<dyn Session>>,
}

impl World {
    pub(crate) fn new(out: Out, seed: u32) -> Self {
        Self {
            seed,
            out,
            sources: Vec::new(),
            due: BinaryHeap::new(),
            planned: 0,
            sessions: 0,
        }
    }

    /// Adds a source that will start `sessions` sessions.
    pub(crate) fn add(&mut self, part: Part) {
        let index = self.sources.len();
        let first = part.arrivals.open().unwrap_or(1);
        self.sources.push(Running {
            source: part.source,
            arrivals: part.arrivals,
            left: part.sessions,
            started: 0,
            rng: stream(self.seed, index as u64),
        });
        for _ in 0..first.min(part.sessions) {
            self.plan_start(index, 0);
        }
    }

    /// Runs until nothing is due; returns the number of requests.
    pub(crate) fn run(mut self) -> Result<u64, GenError> {
        while let Some(Reverse(event)) = self.due.pop() {
            let (now_us, source) = (event.at_us, event.source);
            let mut session = match event.session {
                Some(session) => session,
                None => self.start(source, now_us)?,
            };
            let next = session.turn(now_us, &mut self.out)?;
            self.out.fresh.check()?;
            match next {
                Next::Turn(at_us) => self.plan(at_us, source, Some(session)),
                Next::Over(at_us) if self.sources[source].arrivals.open().is_some() => {
                    self.plan_start(source, at_us);
                }
                Next::Over(_) => {}
            }
        }
        Ok(self.out.writer.finish()?)
    }

    fn start(&mut self, index: usize, at_us: i64) -> Result<Box<dyn Session>, GenError> {
        if self.sources[index].arrivals.open().is_none() {
            self.plan_start(index, at_us);
        }
        let running = &mut self.sources[index];
        let start = Start {
            at_us,
            session_id: self.sessions,
            rng: stream(self.seed, (index as u64 + 1) << 40 | running.started),
        };
        running.started += 1;
        self.sessions += 1;
        running.source.begin(start, &mut self.out)
    }

    fn plan_start(&mut self, index: usize, from_us: i64) {
        let running = &mut self.sources[index];
        if running.left == 0 {
            return;
        }
        let at_us = running
            .arrivals
            .next(from_us, running.left, &mut running.rng);
        running.left -= 1;
        self.plan(at_us, index, None);
    }

    fn plan(&mut self, at_us: i64, source: usize, session: Option<Box<dyn Session>>) {
        self.due.push(Reverse(Event {
            at_us,
            number: self.planned,
            source,
            session,
        }));
        self.planned += 1;
    }
}

/// A source to add.
pub(crate) struct Part {
    pub(crate) source: Box<dyn Source>,
    pub(crate) arrivals: Arrivals,
    pub(crate) sessions: u32,
}

/// One of the independent streams of a seed.
pub(crate) fn stream(seed: u32, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(u64::from(seed));
    rng.set_stream(number);
    rng
}

impl Event {
    fn key(&self) -> (i64, u64) {
        (self.at_us, self.number)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
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
        self.key().cmp(&other.key())
    }
}
