//! What an importer is, and one import.

use std::path::Path;

use params::{Param, Params};
use trace::AtomicFile;

use super::options::BLOCK_TOKENS;
use crate::error::ImportError;
use crate::note::Imported;

/// A format and its importer.
#[derive(Debug)]
pub struct ImportFormat {
    /// What the user calls it.
    pub name: &'static str,
    /// One line: what it is.
    pub about: &'static str,
    /// What the reader of the help should know: units, what the ids mean, what is missing and taken instead.
    pub details: &'static str,
    /// What can be chosen.
    pub options: &'static [Param],
    pub(crate) read: fn(&mut ImportJob<'_>) -> Result<Imported, ImportError>,
}

/// One import.
pub struct ImportJob<'a> {
    /// The format.
    pub format: &'static ImportFormat,
    /// The file or folder to read.
    pub input: &'a Path,
    /// The trace to write.
    pub out: &'a Path,
    /// Fail rather than change or drop anything.
    pub strict: bool,
    /// The options' values.
    pub params: Params,
    /// Hears how many files are done and to do.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

impl ImportJob<'_> {
    /// Reads the input and writes the trace.
    ///
    /// # Errors
    /// Where the input cannot be read, a row of it cannot be used (all are checked, the first ten named), the caller is
    /// strict and something would be changed or dropped, or the output cannot be written. Nothing is written then.
    pub fn run(&mut self) -> Result<Imported, ImportError> {
        // A place that cannot be written is found out before the work, not after.
        AtomicFile::create(self.out).map_err(|fault| ImportError::io(self.out, fault))?;
        (self.format.read)(self)
    }

    /// The size of blocks, of a format that has the option.
    pub(crate) fn block_tokens(&self) -> u32 {
        self.params.parsed(BLOCK_TOKENS)
    }

    /// All options as they would be given, by name.
    pub(crate) fn options_as_given(&self) -> String {
        let mut names: Vec<_> = self
            .format
            .options
            .iter()
            .map(|option| option.name)
            .collect();
        names.sort_unstable();
        names
            .into_iter()
            .filter_map(|name| match self.params.get(name)? {
                "true" => Some(format!(" --{name}")),
                value => Some(format!(" --{name} {value}")),
            })
            .collect()
    }
}
