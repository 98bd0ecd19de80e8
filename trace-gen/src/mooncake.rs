//! Import of Mooncake traces: JSON lines of `timestamp` (ms), `input_length`, `output_length` and `hash_ids`.
//!
//! There is one id per block of the prompt, the partial last one included; an id stands for the block and its whole
//! prefix. The partial block is dropped, because an engine does not cache it. Outputs have no ids, and the format knows
//! no sessions: every request is its own.

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;
use trace::{Body, Content, Meta, Provenance, Row, prompt_blocks};

use crate::error::{GenError, Place, Rejected};
use crate::import::{Imported, SourceRow, lines, microseconds, write_sorted};

/// Tokens of a block in the published Mooncake traces.
pub const BLOCK_TOKENS: u32 = 512;

#[derive(Deserialize)]
struct Record {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

/// Imports the JSON lines at `input` (packed if named `.zst`) as a block trace.
///
/// # Errors
/// Where the input cannot be read, a row cannot be used (all are checked, the first ten named by line), or the output
/// cannot be written.
pub fn import(input: &Path, out: &Path, block_tokens: u32) -> Result<Imported, GenError> {
    if block_tokens == 0 {
        return Err(GenError::Parameter {
            name: "block size",
            found: "0 tokens".to_owned(),
            expected: "at least 1".to_owned(),
        });
    }
    let mut rows = Vec::new();
    let mut rejected = Rejected::default();
    let mut partial = 0_u64;
    for line in lines(input)? {
        let (number, text) = line?;
        let place = Place::line(input, number);
        match row(&text, block_tokens, rows.len() as u64) {
            Ok((row, dropped)) => {
                partial += u64::from(dropped);
                rows.push(SourceRow { place, row });
            }
            Err(reason) => rejected.add(&place, &reason),
        }
    }
    rejected.check()?;
    let requests = rows.len() as u64;
    let out_of_order = write_sorted(out, &meta(input, block_tokens), rows)?;
    let mut notes = vec![format!(
        "dropped the partial last block of {partial} requests: an engine caches full blocks only"
    )];
    if out_of_order > 0 {
        notes.push(format!(
            "sorted by arrival: {out_of_order} rows were out of order"
        ));
    }
    Ok(Imported {
        requests,
        sessions: requests,
        notes,
    })
}

/// The row of a line, and whether a partial block was dropped.
fn row(text: &str, block_tokens: u32, index: u64) -> Result<(Row<'static>, bool), String> {
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
        request_id: index,
        arrival_us,
        session_id: index,
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

fn meta(input: &Path, block_tokens: u32) -> Meta {
    Meta {
        content: Content::Blocks { block_tokens },
        provenance: Provenance {
            name: input
                .file_stem()
                .map(|name| name.to_string_lossy().into_owned()),
            source: input
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
            generator: Some("trace-gen import mooncake".to_owned()),
            ..Provenance::default()
        },
    }
}
