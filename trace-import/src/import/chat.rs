//! Conversations: messages into prompts and outputs, and sessions into a clock where there is none.
//!
//! A prompt is rendered as one compact JSON message a line, so every message begins with tokens of its own and a longer
//! conversation extends a shorter one token by token. The model's own template is not recorded in these formats.

use std::borrow::Cow;

use params::{Domain, Param};
use serde_json::Value;
use trace::Row;

use super::format::ImportJob;
use super::sink::RowSink;
use super::tokens::Texts;
use crate::error::{ImportError, SourceLocation};
use crate::note::Action;

/// How many sessions run at once, for formats without a clock.
pub(crate) const AT_ONCE: Param = Param {
    name: "at-once",
    help: "Sessions that run at a time, in step; when one ends, the next begins.",
    domain: Domain::Count(1, u32::MAX as u64),
    default: "16",
};

/// The pace of a session, for formats without a clock.
pub(crate) const STEP_GAP: Param = Param {
    name: "step-gap",
    help: "Time from one request of a session to the next.",
    domain: Domain::Duration,
    default: "1s",
};

/// One request of a conversation.
pub(crate) struct Turn {
    pub(crate) location: SourceLocation,
    pub(crate) prompt: Vec<u32>,
    pub(crate) output: Vec<u32>,
    pub(crate) tool: Option<String>,
}

/// A conversation as it grows.
pub(crate) struct Transcript<'a> {
    texts: &'a Texts,
    tokens: Vec<u32>,
}

impl<'a> Transcript<'a> {
    pub(crate) fn new(texts: &'a Texts) -> Self {
        Self {
            texts,
            tokens: Vec::new(),
        }
    }

    /// Goes on with a message.
    pub(crate) fn add(&mut self, message: &Value) {
        self.tokens.extend(self.texts.tokens(&line(message)));
    }

    /// The request that `message` answers; the conversation goes on with it.
    pub(crate) fn answer(&mut self, location: SourceLocation, message: &Value) -> Turn {
        let output = self.texts.tokens(&line(message));
        let prompt = self.tokens.clone();
        self.tokens.extend_from_slice(&output);
        Turn {
            location,
            prompt,
            output,
            tool: tool(message),
        }
    }

    pub(crate) fn into_tokens(self) -> Vec<u32> {
        self.tokens
    }
}

fn line(message: &Value) -> String {
    format!("{message}\n")
}

/// The first tool that a message calls.
pub(crate) fn tool(message: &Value) -> Option<String> {
    let name = message.pointer("/tool_calls/0/function/name")?;
    Some(name.as_str()?.to_owned())
}

/// Takes in sessions that have no clock: they run `at-once` at a time, the first free place going to the next session.
pub(crate) fn push_sessions(
    sink: &mut RowSink,
    job: &ImportJob<'_>,
    texts: &Texts,
    sessions: Vec<Vec<Turn>>,
) -> Result<(), ImportError> {
    let gap_us = job.params.duration_us(STEP_GAP.name).unsigned_abs();
    let at_once = job.params.parsed::<u32>(AT_ONCE.name);
    let lengths: Vec<_> = sessions.iter().map(Vec::len).collect();
    let places = places(&lengths, at_once as usize);
    for (turns, (slot, first)) in sessions.into_iter().zip(places) {
        let session_id = sink.new_session();
        let mut last = None;
        for (step, turn) in turns.into_iter().enumerate() {
            let tick = (first + step) as u64;
            let arrival_us = tick
                .saturating_mul(gap_us)
                .saturating_add(slot as u64 * gap_us / u64::from(at_once));
            let mut row = Row {
                arrival_us: i64::try_from(arrival_us).unwrap_or(i64::MAX),
                session_id,
                step: u32::try_from(step).unwrap_or(u32::MAX),
                parent_request: last,
                tool: turn.tool.map(Cow::Owned),
                ..Row::default()
            };
            last = Some(sink.next_id());
            match texts.fill(&mut row, turn.prompt, turn.output) {
                Ok(()) => sink.push(turn.location, row)?,
                Err(reason) => sink.reject(&turn.location, &reason),
            }
        }
    }
    sink.note(
        Action::Format,
        format!(
            "no times: {at_once} sessions at a time, each in steps of {} s",
            gap_us as f64 / 1e6
        ),
    );
    Ok(())
}

/// The slot of every session, and the tick of its first request.
fn places(lengths: &[usize], at_once: usize) -> Vec<(usize, usize)> {
    let mut free_at = vec![0; at_once.min(lengths.len().max(1))];
    let place = |&length: &usize| {
        let first_free = free_at.iter().enumerate().min_by_key(|&(_, tick)| tick);
        let (slot, &first) = first_free.unwrap_or((0, &0));
        free_at[slot] += length;
        (slot, first)
    };
    lengths.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_place_goes_to_the_next_session() {
        assert_eq!(places(&[3, 1, 2, 1], 2), [(0, 0), (1, 0), (1, 1), (0, 3)]);
        assert_eq!(places(&[2, 2], 1), [(0, 0), (0, 2)]);
        assert_eq!(places(&[], 4), []);
    }
}
