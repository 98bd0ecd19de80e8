//! One growing context: a session whose every prompt repeats what came before, until its context policy forgets.
//!
//! All turns are drawn when the session starts, so the declared hints are true: how often a path will be read again, and
//! whether the session goes on.

use trace::Hints;
use trace::synthetic::Text;

use crate::error::GenError;
use crate::service::Service;
use crate::world::{Ask, Next, Out, Session};

/// One request of the session, and what then becomes of the context.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) output_tokens: u32,
    /// What the output calls.
    pub(crate) tool: Option<&'static str>,
    /// From the request's end to the next one.
    pub(crate) wait_us: i64,
    pub(crate) keep: Keep,
    /// Tokens added after that.
    pub(crate) grow: u32,
}

/// What a context keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep {
    All,
    /// The first so many tokens.
    First(u32),
    /// The first `pinned` and, after growing, as much of the end as makes `total`.
    Window {
        pinned: u32,
        total: u32,
    },
}

/// What a session is apart from its turns.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) session_id: u64,
    pub(crate) kind: &'static str,
    pub(crate) service: Service,
    /// Template, priority: what every request declares.
    pub(crate) hints: Hints,
}

pub(crate) struct Conversation {
    identity: Identity,
    text: Text,
    turns: Vec<Turn>,
    /// Per turn, later turns that read its whole path.
    reads: Vec<u32>,
    at: usize,
    parent_request: Option<u64>,
}

impl Conversation {
    /// A session that begins with the prompt `text`.
    pub(crate) fn new(identity: Identity, text: Text, turns: Vec<Turn>) -> Self {
        Self {
            reads: reads(text.len_tokens(), &turns),
            identity,
            text,
            turns,
            at: 0,
            parent_request: None,
        }
    }
}

impl Session for Conversation {
    fn turn(&mut self, now_us: i64, out: &mut Out) -> Result<Next, GenError> {
        let Some(turn) = self.turns.get(self.at) else {
            return Ok(Next::Over(now_us));
        };
        let last = self.at + 1 == self.turns.len();
        self.text.grow(turn.output_tokens, &mut out.fresh);
        let request_id = out.write(&Ask {
            at_us: now_us,
            session_id: self.identity.session_id,
            step: self.at as u32,
            parent_request: self.parent_request,
            kind: self.identity.kind,
            tool: turn.tool,
            text: &self.text,
            output_tokens: turn.output_tokens,
            hints: Hints {
                remaining_uses: Some(self.reads[self.at]),
                steps_to_next: (!last).then_some(1),
                ..self.identity.hints
            },
        })?;
        let service_us = self.identity.service.micros(turn.output_tokens);
        let end_us = now_us.saturating_add(service_us);
        if last {
            return Ok(Next::Over(end_us));
        }
        match turn.keep {
            Keep::All | Keep::Window { .. } => {}
            Keep::First(tokens) => self.text.truncate(tokens),
        }
        self.text.grow(turn.grow, &mut out.fresh);
        if let Keep::Window { pinned, total } = turn.keep {
            self.text.slide(pinned, total - pinned, &mut out.fresh);
        }
        self.at += 1;
        self.parent_request = Some(request_id);
        Ok(Next::Turn(end_us.saturating_add(turn.wait_us)))
    }
}

/// Per turn, how many later prompts begin with its whole path (its last token, which has no KV, left out).
fn reads(first_prompt_tokens: u32, turns: &[Turn]) -> Vec<u32> {
    let mut prompt = first_prompt_tokens;
    let mut paths = Vec::with_capacity(turns.len());
    let mut kept = Vec::with_capacity(turns.len());
    for turn in turns {
        let end = prompt + turn.output_tokens;
        paths.push(prompt + turn.output_tokens.max(1) - 1);
        kept.push(match turn.keep {
            Keep::All => end,
            Keep::First(tokens) => tokens.min(end),
            Keep::Window { pinned, total } if total < end + turn.grow => pinned,
            Keep::Window { .. } => end,
        });
        prompt = match turn.keep {
            Keep::All => end + turn.grow,
            Keep::First(tokens) => tokens.min(end) + turn.grow,
            Keep::Window { total, .. } => total.min(end + turn.grow),
        };
    }
    let count = |(at, path): (usize, &u32)| {
        let later = kept[at..turns.len() - 1].iter();
        later.take_while(|kept| *kept >= path).count() as u32
    };
    paths.iter().enumerate().map(count).collect()
}
