//! What can go wrong when a trace is imported, exported or changed, and where in the input.

use std::fmt;
use std::path::{Path, PathBuf};

use params::ParamError;
use trace::{OverBudget, TraceError};

use crate::note::Note;

/// Why no trace was made. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An input could not be read.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        reason: std::io::Error,
    },
    /// There is nothing to import.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Rows of the input cannot be used.
    #[error("{0}")]
    Rejected(Rejected),
    /// The rows need more memory than they may have.
    #[error("{location}: {reason}")]
    Memory {
        /// Where the input was then.
        location: String,
        /// The budget.
        reason: OverBudget,
    },
    /// The caller is strict, and something would be changed or dropped.
    #[error("strict, so nothing written; the import would have to change or drop:{}", listed(.0))]
    Strict(Vec<Note>),
    /// An option does not exist or has a value outside its domain.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// An option or parameter does not fit the input.
    #[error("{name} is {found}; expected {expected}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        found: String,
        /// What would do.
        expected: String,
    },
}

impl ImportError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            reason: source,
        }
    }
}

fn listed(notes: &[Note]) -> String {
    let lines = notes.iter().map(|note| format!("\n  {note}"));
    lines.collect()
}

/// How many rejected rows are named; the rest are counted.
const NAMED: usize = 10;

/// The rows of one import that cannot be used.
#[derive(Debug, Default)]
pub struct Rejected {
    named: Vec<(SourceLocation, String)>,
    count: usize,
}

impl Rejected {
    /// Rows rejected.
    pub fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn add(&mut self, location: &SourceLocation, reason: &dyn fmt::Display) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((location.clone(), reason.to_string()));
        }
    }

    /// An error if any row was rejected.
    pub(crate) fn check(&mut self) -> Result<(), ImportError> {
        match self.count {
            0 => Ok(()),
            _ => Err(ImportError::Rejected(std::mem::take(self))),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.count == 1 { "row" } else { "rows" };
        write!(out, "{} {rows} rejected, nothing written:", self.count)?;
        for (location, reason) in &self.named {
            write!(out, "\n  {location}: {reason}")?;
        }
        match self.count - self.named.len() {
            0 => Ok(()),
            more => write!(out, "\n  and {more} more"),
        }
    }
}

/// Where a row of an input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) file: PathBuf,
    /// Counted from 1, where the input has lines.
    pub(crate) line: Option<usize>,
    /// Where in a nested object, such as `requests[3]`.
    pub(crate) within: String,
}

impl SourceLocation {
    pub(crate) fn line(file: &Path, line: usize) -> Self {
        Self {
            file: file.to_owned(),
            line: Some(line),
            within: String::new(),
        }
    }

    pub(crate) fn file(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            within: String::new(),
        }
    }

    /// The same location, further in.
    pub(crate) fn within(&self, within: &str) -> Self {
        let dot = if self.within.is_empty() { "" } else { "." };
        Self {
            within: format!("{}{dot}{within}", self.within),
            ..self.clone()
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(out, ", line {line}")?;
        }
        if !self.within.is_empty() {
            write!(out, ", {}", self.within)?;
        }
        Ok(())
    }
}
