//! JSON lines with everything that the trace holds.

use std::io::Write;

use serde::Serialize;
use trace::TraceReader;

use super::target::{Export, ExportFormat};
use crate::error::ImportError;

pub(super) static FORMAT: ExportFormat = ExportFormat {
    name: "jsonl",
    about: "JSON lines: the trace's metadata, then a request a line with the Parquet columns' names and units.",
    details: "Nothing is lost: `trace-gen import jsonl` gives the same trace again.",
    write,
};

fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<u64, ImportError> {
    let mut reader = TraceReader::open(export.trace, export.block_tokens)?;
    line(export, out, reader.meta())?;
    let mut rows = 0;
    while let Some(row) = reader.next_row()? {
        line(export, out, &row)?;
        rows += 1;
    }
    Ok(rows)
}

fn line(
    export: &Export<'_>,
    out: &mut dyn Write,
    value: &impl Serialize,
) -> Result<(), ImportError> {
    serde_json::to_writer(&mut *out, value)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .map_err(|fault| ImportError::io(export.out, fault))
}
