//! The rows of a trace as JSON lines, as `trace-gen export jsonl` writes them.

use std::collections::HashSet;

use trace::{Body, Content, Meta, Request, Row, TraceError, TraceWriter, WorkloadBuilder};

use super::format::{ImportFormat, ImportJob};
use super::source::lines;
use crate::error::{ImportError, Rejected, SourceLocation};
use crate::note::Imported;

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "jsonl",
    about: "A trace as JSON lines, as `trace-gen export jsonl` writes it.",
    details: "\
The first line holds the trace's metadata (trace.schema, trace.content, trace.block_tokens, ...), every other line a
request, with the names and units of the Parquet columns. Rows are taken as they are, metadata too: a trace that was
exported comes back byte for byte. Rows must be sorted by arrival.",
    options: &[],
    read,
};

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let mut lines = lines(job.input)?;
    let mut rejected = Rejected::default();
    let Some(first) = lines.next() else {
        return Err(ImportError::Input {
            path: job.input.to_owned(),
            problem: "no line in it; expected the metadata first".to_owned(),
        });
    };
    let (number, text) = first?;
    let meta: Meta = match serde_json::from_str(&text) {
        Ok(meta) => meta,
        Err(reason) => {
            rejected.add(&SourceLocation::line(job.input, number), &reason);
            return Err(ImportError::Rejected(rejected));
        }
    };
    let mut writer = TraceWriter::create(job.out, &meta)?;
    let mut paths = Paths::new(meta.content);
    let mut sessions = HashSet::new();
    for line in lines {
        let (number, text) = line?;
        let row: Result<Row<'static>, _> = serde_json::from_str(&text);
        let row = row.map_err(|fault| fault.to_string());
        let checked = row.and_then(|row| paths.check(&row).map(|()| row));
        let written = match checked {
            Err(reason) => Err(reason),
            Ok(row) => match writer.write(&row) {
                Err(TraceError::Value {
                    column,
                    found,
                    expected,
                    ..
                }) => Err(format!("column `{column}`: {found}; expected {expected}")),
                other => other.map(|()| {
                    sessions.insert(row.session_id);
                    Ok(())
                })?,
            },
        };
        if let Err(reason) = written {
            rejected.add(&SourceLocation::line(job.input, number), &reason);
        }
    }
    rejected.check()?;
    Ok(Imported {
        requests: writer.finish()?,
        sessions: sessions.len() as u64,
        notes: Vec::new(),
    })
}

/// Checks that block ids stand for their prefixes, up to the first that does not: from there on nobody knows which of two
/// paths is wrong.
struct Paths(Option<WorkloadBuilder>);

impl Paths {
    fn new(content: Content) -> Self {
        Self(match content {
            Content::Tokens => None,
            Content::Blocks { block_tokens } => Some(WorkloadBuilder::new(block_tokens)),
        })
    }

    fn check(&mut self, row: &Row<'_>) -> Result<(), String> {
        let (Some(builder), Body::Blocks { prompt, output }) = (&mut self.0, &row.body) else {
            return Ok(());
        };
        let path = [prompt, output.as_deref().unwrap_or_default()].concat();
        let pushed = builder.push(Request::default(), &path);
        if pushed.is_err() {
            self.0 = None;
        }
        pushed.map_err(|fault| fault.to_string())
    }
}
