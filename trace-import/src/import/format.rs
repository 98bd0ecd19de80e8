//! What an importer is, and one import.

use std::path::Path;

use super::options::{Opt, Values};
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
    pub options: &'static [&'static Opt],
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
    pub values: Values,
    /// Hears how many files are done and to do.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

impl ImportFormat {
    /// The values given for its options (name, value), and the defaults of the rest.
    ///
    /// # Errors
    /// Where the format has no such option, or the option takes something else.
    pub fn values(
        &self,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Values, ImportError> {
        Values::new(self.name, self.options, given)
    }
}

impl ImportJob<'_> {
    /// Reads the input and writes the trace.
    ///
    /// # Errors
    /// Where the input cannot be read, a row of it cannot be used (all are checked, the first ten named), the caller is
    /// strict and something would be changed or dropped, or the output cannot be written. Nothing is written then.
    pub fn run(&mut self) -> Result<Imported, ImportError> {
        (self.format.read)(self)
    }
}
