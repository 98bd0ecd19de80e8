//! Mooncake traces: JSON lines of `timestamp` (ms), `input_length`, `output_length` and `hash_ids`.
//!
//! There is one id per block of the prompt, the partial last one included; an id stands for the block and its whole
//! prefix. The partial block is dropped, because an engine does not cache it. Outputs have no ids, and the format knows
//! no sessions: every request is its own.

use std::borrow::Cow;

use serde::Deserialize;
use trace::{Body, Content, Row, prompt_blocks};

use super::clock::microseconds;
use super::format::{ImportFormat, ImportJob};
use super::options::block_tokens;
use super::sink::{Links, Order, RowSink};
use super::source::lines;
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "mooncake",
    about: "JSON lines with timestamp (ms), input_length, output_length and hash_ids.",
    details: "\
Ids stand for a block and its whole prefix, the partial last block included, which is dropped: an engine caches full
blocks only. Outputs have no ids. The format knows no sessions: every request is its own.",
    options: &[block_tokens("512")],
    read,
};

#[derive(Deserialize)]
struct Record {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let block_tokens = job.block_tokens();
    let mut sink = RowSink::default();
    let mut partial = 0;
    for line in lines(job.input)? {
        let (number, text) = line?;
        let location = SourceLocation::line(job.input, number);
        match row(&text, block_tokens) {
            Ok((mut row, dropped)) => {
                partial += u64::from(dropped);
                row.session_id = sink.new_session();
                sink.push(location, row)?;
            }
            Err(reason) => sink.reject(&location, &reason),
        }
    }
    sink.count(
        Action::Format,
        partial,
        "requests end in a partial last block, which is dropped: an engine caches full blocks only",
    );
    sink.finish(
        job,
        Content::Blocks { block_tokens },
        Order::File,
        Links::Given,
    )
}

/// The row of a line, and whether a partial block was dropped.
fn row(text: &str, block_tokens: u32) -> Result<(Row<'static>, bool), String> {
    let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let arrival_us = microseconds(record.timestamp, 1e3).ok_or_else(|| {
        format!(
            "timestamp {} is not a time in ms from 0 on",
            record.timestamp
        )
    })?;
    let (found, expected) = (
        record.hash_ids.len(),
        record.input_length.div_ceil(block_tokens),
    );
    if found != expected as usize {
        return Err(format!(
            "{found} hash_ids; expected {expected} for an input_length of {} in blocks of {block_tokens}",
            record.input_length
        ));
    }
    let mut ids = record.hash_ids;
    ids.truncate(prompt_blocks(record.input_length, block_tokens) as usize);
    let dropped = found > ids.len();
    let row = Row {
        arrival_us,
        prompt_tokens: record.input_length,
        output_tokens: record.output_length,
        body: Body::Blocks {
            prompt: Cow::Owned(ids),
            output: None,
        },
        ..Row::default()
    };
    Ok((row, dropped))
}
