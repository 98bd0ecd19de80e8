//! AIPerf traces: Mooncake's fields, and `session_id` and `delay` (ms) for sessions whose next request waits for the
//! answer.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use trace::{Body, Content, Row};

use super::clock::microseconds;
use super::ids::full_blocks;
use super::intake::{Deed, Imported, Intake, Links, Order};
use super::options::{Kind, Opt};
use super::source::lines;
use super::{Format, Job};
use crate::error::{GenError, Place};

pub(super) static FORMAT: Format = Format {
    name: "aiperf",
    about: "Mooncake's fields plus session_id and delay (ms): closed-loop sessions.",
    details: "\
A request without timestamp arrives after the one before it in its session: that one's arrival, plus its output tokens at
--output-token-time, plus its own delay. The first request of a session without timestamp arrives at 0. Ids stand for a
block of the whole prompt and all before it; partial last blocks are dropped. Rows of text_input have no ids: log their
messages and import them as openai-chat.",
    options: &[&BLOCK_TOKENS, &OUTPUT_TOKEN_TIME],
    read,
};

static BLOCK_TOKENS: Opt = Opt {
    name: "block-tokens",
    about: "Tokens of a block.",
    kind: Kind::Count,
    default: Some("512"),
};

static OUTPUT_TOKEN_TIME: Opt = Opt {
    name: "output-token-time",
    about: "Time that an output token is taken to need.",
    kind: Kind::Span,
    default: Some("20ms"),
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
    intake: Intake,
    block_tokens: u32,
    token_us: i64,
    last: HashMap<u64, Last>,
    partial: u64,
    waited: u64,
}

fn read(job: &mut Job<'_>) -> Result<Imported, GenError> {
    let block_tokens = job.values.count(&BLOCK_TOKENS)?;
    let mut reader = Reader {
        intake: Intake::default(),
        block_tokens,
        token_us: i64::try_from(job.values.span_us(&OUTPUT_TOKEN_TIME)?).unwrap_or(i64::MAX),
        last: HashMap::new(),
        partial: 0,
        waited: 0,
    };
    for line in lines(job.input)? {
        let (number, text) = line?;
        let place = Place::line(job.input, number);
        match reader.row(&text) {
            Ok(row) => reader.intake.push(place, row),
            Err(reason) => reader.intake.reject(&place, &reason),
        }
    }
    let mut intake = reader.intake;
    intake.count(
        Deed::Format,
        reader.waited,
        "requests have no timestamp: they arrive when the answer before them is done and their delay over",
    );
    intake.count(
        Deed::Format,
        reader.partial,
        "requests end in a partial last block, which is dropped: an engine caches full blocks only",
    );
    intake.finish(
        job,
        Content::Blocks { block_tokens },
        Order::Session,
        Links::Given,
    )
}

impl Reader {
    fn row(&mut self, text: &str) -> Result<Row<'static>, String> {
        let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let ids = record
            .hash_ids
            .ok_or("no `hash_ids`, so no prefix identity; text can be imported as openai-chat")?;
        let prompt_tokens = record.input_length.ok_or("no `input_length`")?;
        let (ids, dropped) = full_blocks(ids, prompt_tokens, self.block_tokens)?;
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
            None | Some(Value::Null) => self.intake.new_session(),
            Some(name) => self.intake.session(&name.to_string()),
        };
        let before = self.last.get(&session_id).copied();
        let arrival_us = timestamp_us.unwrap_or_else(|| {
            self.waited += 1;
            before
                .map_or(0, |last| last.done_us)
                .saturating_add(delay_us)
        });
        let now = Last {
            request: self.intake.next_id(),
            step: before.map_or(0, |last| last.step + 1),
            done_us: i64::from(record.output_length)
                .saturating_mul(self.token_us)
                .saturating_add(arrival_us),
        };
        self.last.insert(session_id, now);
        self.partial += u64::from(dropped);
        Ok(Row {
            arrival_us,
            session_id,
            step: now.step,
            parent_request: before.map(|last| last.request),
            prompt_tokens,
            output_tokens: record.output_length,
            body: Body::Blocks {
                prompt: Cow::Owned(ids),
                output: None,
            },
            ..Row::default()
        })
    }
}
