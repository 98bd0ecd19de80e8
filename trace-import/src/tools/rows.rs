//! What the tools have in common: rows in, rows out, with new ids.

use std::collections::HashMap;
use std::path::Path;

use trace::{Meta, Provenance, Row, TraceReader, TraceWriter};

use crate::error::ImportError;

/// What a tool did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Requests read.
    pub read: u64,
    /// Requests written.
    pub written: u64,
}

/// The metadata of what a tool makes of a trace.
pub(crate) fn made_by(meta: &Meta, tool: &str) -> Meta {
    let before = meta.provenance.generator.as_deref();
    let generator = match before {
        Some(before) => format!("{before}; trace-gen {tool}"),
        None => format!("trace-gen {tool}"),
    };
    Meta {
        content: meta.content,
        provenance: Provenance {
            generator: Some(generator),
            ..meta.provenance.clone()
        },
    }
}

/// Gives requests new ids in the order in which they are written.
#[derive(Default)]
pub(crate) struct Renumber {
    ids: HashMap<u64, u64>,
}

impl Renumber {
    pub(crate) fn apply(&mut self, row: &mut Row<'_>) {
        let id = self.ids.len() as u64;
        self.ids.insert(row.request_id, id);
        row.request_id = id;
        row.parent_request = row
            .parent_request
            .and_then(|parent| self.ids.get(&parent).copied());
    }
}

/// Streams a trace: rows that `change` returns true for are written, as it left them.
pub(crate) fn stream(
    input: &Path,
    out: &Path,
    tool: &str,
    mut change: impl FnMut(&mut Row<'_>) -> Result<bool, ImportError>,
) -> Result<Done, ImportError> {
    let mut reader = TraceReader::open(input, None)?;
    let mut writer = TraceWriter::create(out, &made_by(reader.meta(), tool))?;
    let mut numbers = Renumber::default();
    let mut done = Done::default();
    while let Some(mut row) = reader.next_row()? {
        done.read += 1;
        if change(&mut row)? {
            numbers.apply(&mut row);
            writer.write(&row)?;
        }
    }
    done.written = writer.finish()?;
    Ok(done)
}

/// The session at the root of every session: a session that another one's request started belongs with that one.
#[derive(Default)]
pub(crate) struct Roots {
    /// By request.
    session: HashMap<u64, u64>,
    /// By session.
    root: HashMap<u64, u64>,
}

impl Roots {
    /// The root of a row's session; rows come in order.
    pub(crate) fn of(&mut self, row: &Row<'_>) -> u64 {
        let parent = row
            .parent_request
            .and_then(|parent| self.session.get(&parent));
        let above = parent.and_then(|session| self.root.get(session)).copied();
        let root = *self
            .root
            .entry(row.session_id)
            .or_insert(above.unwrap_or(row.session_id));
        self.session.insert(row.request_id, row.session_id);
        root
    }
}
