//! Qwen-Bailian traces: JSON lines of `chat_id`, `parent_chat_id`, `timestamp` (s), `input_length`, `output_length`,
//! `type`, `turn` and `hash_ids` (blocks of 16 tokens).

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use trace::{Body, Content, Row};

use super::clock::microseconds;
use super::format::{ImportFormat, ImportJob};
use super::ids::{IDS, full_blocks, settle};
use super::options::block_tokens;
use super::sink::{Links, Order, RowSink};
use super::source::lines;
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "qwen-bailian",
    about: "JSON lines with chat_id, parent_chat_id, timestamp (s), lengths, type, turn, hash_ids.",
    details: "\
A request that names a parent continues the parent's session; the parent has to stand before it. Whether ids stand for
their whole prefix follows from the ids themselves (see --ids). Partial last blocks are dropped. Outputs have no ids.",
    options: &[block_tokens("16"), IDS],
    read,
};

#[derive(Deserialize)]
struct Record {
    chat_id: i64,
    parent_chat_id: Option<i64>,
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    turn: u32,
    hash_ids: Vec<u64>,
}

#[derive(Default)]
struct Reader {
    sink: RowSink,
    /// Request and session of every chat id.
    chats: HashMap<i64, (u64, u64)>,
    partial: u64,
    orphans: u64,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let block_tokens = job.block_tokens();
    let mut reader = Reader::default();
    for line in lines(job.input)? {
        let (number, text) = line?;
        let location = SourceLocation::line(job.input, number);
        match reader.row(&text, block_tokens) {
            Ok(row) => reader.sink.push(location, row)?,
            Err(reason) => reader.sink.reject(&location, &reason),
        }
    }
    let mut sink = reader.sink;
    settle(&mut sink, &job.params, block_tokens);
    sink.count(
        Action::Format,
        reader.partial,
        "requests end in a partial last block, which is dropped: an engine caches full blocks only",
    );
    sink.count(
        Action::Kept,
        reader.orphans,
        "requests continue a chat that no row before them has: each begins a session",
    );
    sink.finish(
        job,
        Content::Blocks { block_tokens },
        Order::File,
        Links::Given,
    )
}

impl Reader {
    fn row(&mut self, text: &str, block_tokens: u32) -> Result<Row<'static>, String> {
        let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let arrival_us = microseconds(record.timestamp, 1e6).ok_or_else(|| {
            format!(
                "timestamp {} is not a time in s from 0 on",
                record.timestamp
            )
        })?;
        let (ids, dropped) = full_blocks(record.hash_ids, record.input_length, block_tokens)?;
        let named_parent = record.parent_chat_id.filter(|&parent| parent >= 0);
        let parent = named_parent.and_then(|parent| self.chats.get(&parent).copied());
        let session_id = match parent {
            Some((_, session)) => session,
            None => self.sink.new_session(),
        };
        let chat = (self.sink.next_id(), session_id);
        if self.chats.insert(record.chat_id, chat).is_some() {
            return Err(format!(
                "chat_id {} is that of an earlier row",
                record.chat_id
            ));
        }
        self.orphans += u64::from(named_parent.is_some() && parent.is_none());
        self.partial += u64::from(dropped);
        Ok(Row {
            arrival_us,
            session_id,
            step: record.turn.saturating_sub(1),
            parent_request: parent.map(|(request, _)| request),
            kind: Cow::Owned(record.kind),
            prompt_tokens: record.input_length,
            output_tokens: record.output_length,
            body: Body::Blocks {
                prompt: Cow::Owned(ids),
                output: None,
            },
            ..Row::default()
        })
    }
}
