//! A session laid out in full when it starts: a graph of requests, some of them side by side.
//!
//! The declared hints are counted from the layout itself, so they are true.

use std::borrow::Cow;

use trace::Hints;
use trace::synthetic::{FreshIds, Text};

use crate::error::GenError;
use crate::service::Service;
use crate::world::{Ask, Next, Out, Session};

/// One request of a session.
#[derive(Clone, Debug)]
struct Planned {
    at_us: i64,
    /// The prompt, then the output.
    text: Text,
    output_tokens: u32,
    /// Names the agent that runs: requests of one kind are one agent's.
    kind: Cow<'static, str>,
    tool: Option<&'static str>,
    /// The request, by its place in the layout, whose end made this one possible.
    parent: Option<usize>,
    /// Template, priority.
    hints: Hints,
}

/// Lays out a session.
pub(crate) struct Layout {
    pub(crate) service: Service,
    /// What every request declares.
    pub(crate) hints: Hints,
    planned: Vec<Planned>,
}

/// A request that was laid out.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) place: usize,
    /// Prompt and output.
    pub(crate) text: Text,
    pub(crate) end_us: i64,
}

/// What is asked of a [`Layout`].
pub(crate) struct Call<'a> {
    pub(crate) at_us: i64,
    pub(crate) prompt: &'a Text,
    pub(crate) output_tokens: u32,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) tool: Option<&'static str>,
    /// The request whose end made this one possible.
    pub(crate) parent: Option<usize>,
}

impl Layout {
    pub(crate) fn new(service: Service, hints: Hints) -> Self {
        Self {
            service,
            hints,
            planned: Vec::new(),
        }
    }

    pub(crate) fn call(&mut self, call: Call<'_>, fresh: &mut FreshIds) -> Done {
        let mut text = call.prompt.clone();
        text.grow(call.output_tokens, fresh);
        let place = self.planned.len();
        fresh.hold(&text);
        // What cannot be held is not kept; the first request that is written is an error then.
        let kept = match fresh.check() {
            Ok(()) => text.clone(),
            Err(_) => fresh.empty_text(),
        };
        self.planned.push(Planned {
            at_us: call.at_us,
            text: kept,
            output_tokens: call.output_tokens,
            kind: call.kind,
            tool: call.tool,
            parent: call.parent,
            hints: self.hints,
        });
        Done {
            place,
            text,
            end_us: call
                .at_us
                .saturating_add(self.service.micros(call.output_tokens)),
        }
    }

    /// The session, over when the last of its requests has ended.
    pub(crate) fn session(self, session_id: u64) -> Box<dyn Session> {
        let ends = self.planned.iter().map(|planned| {
            planned
                .at_us
                .saturating_add(self.service.micros(planned.output_tokens))
        });
        let end_us = ends.max().unwrap_or(0);
        Box::new(Script::new(session_id, self.planned, end_us))
    }
}

struct Script {
    session_id: u64,
    /// Ordered by time, hints filled in.
    planned: Vec<Planned>,
    /// The requests written so far, by their place in the layout.
    written: Vec<Option<u64>>,
    /// Place in the layout of each request in order of time.
    places: Vec<usize>,
    at: usize,
    end_us: i64,
}

impl Script {
    /// A session of `planned`; `end_us` is when the last of them ends. Parents stand before their children.
    fn new(session_id: u64, planned: Vec<Planned>, end_us: i64) -> Self {
        let mut places: Vec<usize> = (0..planned.len()).collect();
        places.sort_by_key(|&place| planned[place].at_us);
        let mut ordered: Vec<Planned> =
            places.iter().map(|&place| planned[place].clone()).collect();
        declare(&mut ordered);
        Self {
            session_id,
            written: vec![None; planned.len()],
            planned: ordered,
            places,
            at: 0,
            end_us,
        }
    }
}

impl Session for Script {
    fn turn(&mut self, now_us: i64, out: &mut Out) -> Result<Next, GenError> {
        let Some(planned) = self.planned.get(self.at) else {
            return Ok(Next::Over(now_us));
        };
        // The session starts with its first request, whatever that one's time.
        if planned.at_us > now_us {
            return Ok(Next::Turn(planned.at_us));
        }
        let request_id = out.write(&Ask {
            at_us: now_us,
            session_id: self.session_id,
            step: self.at as u32,
            parent_request: planned.parent.and_then(|parent| self.written[parent]),
            kind: &planned.kind,
            tool: planned.tool,
            text: &planned.text,
            output_tokens: planned.output_tokens,
            hints: planned.hints,
        })?;
        out.fresh.release(&planned.text);
        self.written[self.places[self.at]] = Some(request_id);
        self.at += 1;
        Ok(match self.planned.get(self.at) {
            Some(next) => Next::Turn(next.at_us),
            None => Next::Over(self.end_us.max(now_us)),
        })
    }
}

/// Fills in how often each whole path is read again, and in how many steps its agent runs again.
fn declare(ordered: &mut [Planned]) {
    for at in 0..ordered.len() {
        let (before, later) = ordered.split_at_mut(at + 1);
        let Some(request) = before.last_mut() else {
            continue;
        };
        let prompt = |planned: &Planned| {
            let all = planned.text.len_tokens();
            all.saturating_sub(planned.output_tokens)
        };
        let path = prompt(request) + request.output_tokens.max(1) - 1;
        if path > request.text.len_tokens() {
            // Not kept.
            continue;
        }
        let reads = later
            .iter()
            .filter(|other| other.text.begins_with(prompt(other), &request.text, path));
        request.hints.remaining_uses = Some(reads.count() as u32);
        let again = later.iter().position(|other| other.kind == request.kind);
        request.hints.steps_to_next = again.map(|steps| steps as u32 + 1);
    }
}
