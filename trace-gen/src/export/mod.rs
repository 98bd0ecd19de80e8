//! Exporters into other people's formats, one file each, and their registry.

mod jsonl;
mod mooncake;
mod oracle_general;

use std::io::{BufWriter, Write};
use std::path::Path;

use trace::AtomicFile;

use crate::error::GenError;

/// The formats, by name.
pub static TARGETS: &[&Target] = &[&jsonl::TARGET, &mooncake::TARGET, &oracle_general::TARGET];

/// A format and its exporter.
#[derive(Debug)]
pub struct Target {
    /// What the user calls it.
    pub name: &'static str,
    /// One line: what it is.
    pub about: &'static str,
    /// What the reader of the help should know, above all what is lost.
    pub details: &'static str,
    write: fn(&Export<'_>, &mut dyn Write) -> Result<u64, GenError>,
}

/// One export.
#[derive(Debug)]
pub struct Export<'a> {
    /// The format.
    pub target: &'static Target,
    /// The trace to read.
    pub trace: &'a Path,
    /// The file to write.
    pub out: &'a Path,
    /// Tokens of a block, where a trace of tokens is written as blocks; `None` for 16.
    pub block_tokens: Option<u32>,
}

impl Export<'_> {
    /// Writes the file; returns the number of its records.
    ///
    /// # Errors
    /// Where the trace cannot be read or the file cannot be written. Nothing is written then.
    pub fn run(&self) -> Result<u64, GenError> {
        let io = |fault| GenError::io(self.out, fault);
        let mut file = BufWriter::new(AtomicFile::create(self.out).map_err(io)?);
        let records = (self.target.write)(self, &mut file)?;
        let file = file.into_inner().map_err(|fault| io(fault.into_error()))?;
        file.commit().map_err(io)?;
        Ok(records)
    }
}
