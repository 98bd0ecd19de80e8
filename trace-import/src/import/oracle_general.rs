//! libCacheSim's oracleGeneral traces: binary records of 24 bytes, little-endian: clock time (u32, s), object id (u64),
//! object size (u32, bytes), virtual time of the next access (i64, -1 for none).

use std::borrow::Cow;
use std::io::Read;

use trace::{Body, Content, Row};

use super::format::{ImportFormat, ImportJob};
use super::options::{self, block_tokens, option_fault};
use super::sink::{Links, Order, RowSink};
use super::source::open;
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "oracle-general",
    about: "libCacheSim's binary traces of objects (24 bytes a record).",
    details: "\
Objects are flat: each becomes a prompt of one block without parent, and one token more, because a replay always computes
a prompt's last token. Sizes and next accesses are left out: every object counts as one block. Every request is its own
session. The file may be packed as .zst.",
    options: &[block_tokens("16")],
    read,
};

/// Bytes of a record.
pub(crate) const RECORD_BYTES: usize = 24;

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let block_tokens = job.block_tokens();
    let prompt_tokens = block_tokens
        .checked_add(1)
        .ok_or_else(|| option_fault(&options::block_tokens(""), &block_tokens.to_string()))?;
    let mut sink = RowSink::default();
    let mut bytes = Vec::new();
    open(job.input)?
        .read_to_end(&mut bytes)
        .map_err(|fault| ImportError::io(job.input, fault))?;
    let mut sizes = (u32::MAX, 0);
    for (number, record) in bytes.chunks(RECORD_BYTES).enumerate() {
        let location = SourceLocation::file(job.input).within(&format!("record {number}"));
        let Some((time_s, object, size)) = fields(record) else {
            let reason = format!("cut short: {} bytes; expected {RECORD_BYTES}", record.len());
            sink.reject(&location, &reason);
            continue;
        };
        sizes = (sizes.0.min(size), sizes.1.max(size));
        let row = Row {
            arrival_us: i64::from(time_s) * 1_000_000,
            session_id: sink.new_session(),
            prompt_tokens,
            body: Body::Blocks {
                prompt: Cow::Owned(vec![object]),
                output: None,
            },
            ..Row::default()
        };
        sink.push(location, row)?;
    }
    if sizes.0 < sizes.1 {
        let note = format!(
            "sizes are from {} to {} bytes, but every object counts as one block",
            sizes.0, sizes.1
        );
        sink.note(Action::Changed, note);
    }
    sink.finish(
        job,
        Content::Blocks { block_tokens },
        Order::File,
        Links::Given,
    )
}

fn fields(record: &[u8]) -> Option<(u32, u64, u32)> {
    let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
    let u32_at = |at: usize| {
        record[at..]
            .first_chunk()
            .map(|bytes| u32::from_le_bytes(*bytes))
    };
    let object = record[4..]
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes));
    Some((u32_at(0)?, object?, u32_at(12)?))
}
