//! AIPerf traces: Mooncake's fields, and `session_id` and `delay` (ms) for sessions whose next request waits for the
//! answer.
//!
//! A row of a session holds what is new: AIPerf itself builds the prompt from all rows before it and their answers. Some
//! writers give the whole prompt in every row instead; then a row begins with the full blocks of the row before it.

use std::borrow::Cow;
use std::collections::HashMap;

use params::{Domain, Param};
use serde::Deserialize;
use serde_json::Value;
use trace::synthetic::nth_token;
use trace::{Body, Content, Row, prompt_blocks};

use super::clock::microseconds;
use super::format::{ImportFormat, ImportJob};
use super::ids::full_blocks;
use super::options::block_tokens;
use super::sink::{Links, Order, RowSink, SourceRow, invented_length};
use super::source::lines;
use super::tokens::Numbers;
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "aiperf",
    about: "Mooncake's fields plus session_id and delay (ms): closed-loop sessions.",
    details: "\
A request without timestamp arrives after the one before it in its session: that one's arrival, plus its output tokens at
--output-token-time, plus its own delay. The first request of a session without timestamp arrives at 0. Rows of a session
hold either what is new (as AIPerf reads them: a prompt is then all rows before, their answers, and the row; a trace of
synthetic tokens, each id standing for the tokens of its block) or the whole prompt (a trace of blocks; partial last
blocks are dropped). Rows of text_input have no ids: log their messages and import them as openai-chat.",
    options: &[block_tokens("512"), CONTEXT, OUTPUT_TOKEN_TIME],
    read,
};

const CONTEXT: Param = Param {
    name: "context",
    help: "What a row of a session holds: what is new in it (deltas) or the whole prompt; auto tells by whether every \
            row begins with the full blocks of the one before.",
    domain: Domain::Choice(&["auto", "deltas", "whole"]),
    default: "auto",
};

const OUTPUT_TOKEN_TIME: Param = Param {
    name: "output-token-time",
    help: "Time that an output token is taken to need.",
    domain: Domain::Duration,
    default: "20ms",
};

#[derive(Deserialize)]
struct Record {
    timestamp: Option<f64>,
    delay: Option<f64>,
    session_id: Option<Value>,
    input_length: Option<u32>,
    #[serde(default)]
    output_length: u32,
    hash_ids: Option<Vec<u64>>,
}

/// The request before, of the same session.
#[derive(Clone, Copy)]
struct Last {
    request: u64,
    step: u32,
    done_us: i64,
}

struct Reader {
    sink: RowSink,
    block_tokens: u32,
    token_us: i64,
    last: HashMap<u64, Last>,
    /// The ids of every row, that of a partial last block included.
    ids: Vec<Vec<u64>>,
    waited: u64,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader {
        sink: RowSink::default(),
        block_tokens: job.block_tokens(),
        token_us: job.params.duration_us(OUTPUT_TOKEN_TIME.name),
        last: HashMap::new(),
        ids: Vec::new(),
        waited: 0,
    };
    for line in lines(job.input)? {
        let (number, text) = line?;
        let location = SourceLocation::line(job.input, number);
        match reader.row(&text) {
            Ok((row, ids)) => {
                reader.sink.push(location, row)?;
                reader.ids.push(ids);
            }
            Err(reason) => reader.sink.reject(&location, &reason),
        }
    }
    reader.sink.check()?;
    reader.sink.count(
        Action::Format,
        reader.waited,
        "requests have no timestamp: they arrive when the answer before them is done and their delay over",
    );
    let whole = match job.params.get(CONTEXT.name) {
        Some("deltas") => false,
        Some("whole") => true,
        _ => reader.rows_are_whole(),
    };
    let content = match whole {
        true => reader.fill_blocks(),
        false => reader.fill_tokens()?,
    };
    reader
        .sink
        .finish(job, content, Order::Session, Links::Given)
}

impl Reader {
    fn row(&mut self, text: &str) -> Result<(Row<'static>, Vec<u64>), String> {
        let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let ids = record
            .hash_ids
            .ok_or("no `hash_ids`, so no prefix identity; text can be imported as openai-chat")?;
        let prompt_tokens = record.input_length.ok_or("no `input_length`")?;
        full_blocks(ids.clone(), prompt_tokens, self.block_tokens)?;
        let time = |name: &str, ms: f64| {
            let us = microseconds(ms, 1e3);
            us.ok_or_else(|| format!("{name} {ms} is not a time in ms from 0 on"))
        };
        let delay_us = time("delay", record.delay.unwrap_or(0.0))?;
        let timestamp_us = record
            .timestamp
            .map(|ms| time("timestamp", ms))
            .transpose()?;
        let session_id = match &record.session_id {
            None | Some(Value::Null) => self.sink.new_session(),
            Some(name) => self.sink.session(&name.to_string()),
        };
        let before = self.last.get(&session_id).copied();
        let arrival_us = timestamp_us.unwrap_or_else(|| {
            self.waited += 1;
            before
                .map_or(0, |last| last.done_us)
                .saturating_add(delay_us)
        });
        let now = Last {
            request: self.sink.next_id(),
            step: before.map_or(0, |last| last.step + 1),
            done_us: i64::from(record.output_length)
                .saturating_mul(self.token_us)
                .saturating_add(arrival_us),
        };
        self.last.insert(session_id, now);
        let row = Row {
            arrival_us,
            session_id,
            step: now.step,
            parent_request: before.map(|last| last.request),
            prompt_tokens,
            output_tokens: record.output_length,
            ..Row::default()
        };
        Ok((row, ids))
    }

    /// Whether every row of a session begins with the full blocks of the row before it.
    fn rows_are_whole(&mut self) -> bool {
        let mut before: HashMap<u64, &[u64]> = HashMap::new();
        let rows = self.sink.rows().iter().zip(&self.ids);
        rows.into_iter().all(|(SourceRow { row, .. }, ids)| {
            let full = prompt_blocks(row.prompt_tokens, self.block_tokens) as usize;
            let before = before.insert(row.session_id, &ids[..full]);
            before.is_none_or(|before| ids.starts_with(before))
        })
    }

    /// Rows as whole prompts.
    fn fill_blocks(&mut self) -> Content {
        let block_tokens = self.block_tokens;
        let mut partial = 0;
        for (SourceRow { row, .. }, mut ids) in self
            .sink
            .rows()
            .iter_mut()
            .zip(std::mem::take(&mut self.ids))
        {
            let full = prompt_blocks(row.prompt_tokens, block_tokens) as usize;
            partial += u64::from(ids.len() > full);
            ids.truncate(full);
            row.body = Body::Blocks {
                prompt: Cow::Owned(ids),
                output: None,
            };
        }
        self.sink.count(
            Action::Format,
            partial,
            "requests end in a partial last block, which is dropped: an engine caches full blocks only",
        );
        Content::Blocks { block_tokens }
    }

    /// Rows as what is new in their sessions.
    fn fill_tokens(&mut self) -> Result<Content, ImportError> {
        let mut contexts = Contexts {
            block_tokens: self.block_tokens,
            numbers: Numbers::default(),
            blocks: HashMap::new(),
            sessions: HashMap::new(),
        };
        let mut rejected = Vec::new();
        for (at, ids) in std::mem::take(&mut self.ids).into_iter().enumerate() {
            let SourceRow { location, row } = &mut self.sink.rows()[at];
            if let Err(reason) = contexts.fill(row, &ids) {
                rejected.push((location.clone(), reason));
            }
            self.sink.hold(at)?;
        }
        for (location, reason) in rejected {
            self.sink.reject(&location, &reason);
        }
        self.sink.note(
            Action::Format,
            "rows hold what is new in their sessions: prompts are all rows before, their answers, and the row",
        );
        Ok(Content::Tokens)
    }
}

/// What sessions hold so far, in synthetic tokens.
struct Contexts {
    block_tokens: u32,
    numbers: Numbers,
    /// The first token number of every block id.
    blocks: HashMap<u64, u32>,
    sessions: HashMap<u64, Vec<u32>>,
}

impl Contexts {
    /// Gives a row the context of its session, the tokens of its own ids and an answer of its own.
    fn fill(&mut self, row: &mut Row<'static>, ids: &[u64]) -> Result<(), String> {
        let context = self.sessions.entry(row.session_id).or_default();
        let all = context.len() as u64 + u64::from(row.prompt_tokens);
        let prompt_tokens = invented_length("tokens of the prompt", all)?;
        let output_tokens = invented_length("output_length", u64::from(row.output_tokens))?;
        let mut left = row.prompt_tokens;
        for id in ids {
            let first = match self.blocks.get(id) {
                Some(&first) => first,
                None => {
                    let first = self.numbers.take(self.block_tokens)?;
                    self.blocks.insert(*id, first);
                    first
                }
            };
            let tokens = left.min(self.block_tokens);
            context.extend((first..first + tokens).map(nth_token));
            left -= tokens;
        }
        context.extend(self.numbers.fresh(left)?);
        let output: Vec<u32> = self.numbers.fresh(output_tokens)?.collect();
        row.prompt_tokens = prompt_tokens;
        row.body = Body::Tokens {
            prompt: Cow::Owned(context.clone()),
            output: Some(Cow::Owned(output.clone())),
        };
        context.extend(output);
        Ok(())
    }
}
