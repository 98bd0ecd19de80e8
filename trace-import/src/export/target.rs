//! What an exporter is, and one export.

use std::io::{BufWriter, Write};
use std::path::Path;

use trace::AtomicFile;

use crate::error::ImportError;

/// A format and its exporter.
#[derive(Debug)]
pub struct ExportFormat {
    /// What the user calls it.
    pub name: &'static str,
    /// One line: what it is.
    pub about: &'static str,
    /// What the reader of the help should know, above all what is lost.
    pub details: &'static str,
    pub(crate) write: fn(&Export<'_>, &mut dyn Write) -> Result<u64, ImportError>,
}

/// One export.
#[derive(Debug)]
pub struct Export<'a> {
    /// The format.
    pub format: &'static ExportFormat,
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
    pub fn run(&self) -> Result<u64, ImportError> {
        let io = |fault| ImportError::io(self.out, fault);
        let mut file = BufWriter::new(AtomicFile::create(self.out).map_err(io)?);
        let records = (self.format.write)(self, &mut file)?;
        let file = file.into_inner().map_err(|fault| io(fault.into_error()))?;
        file.commit().map_err(io)?;
        Ok(records)
    }
}
