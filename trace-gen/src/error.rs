//! What can go wrong when a trace is made.

use std::fmt;
use std::path::{Path, PathBuf};

use trace::TraceError;

use crate::import::Note;

/// Why no trace was made. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum GenError {
    /// A trace could not be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An input could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
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
    /// A synthetic trace would need more ids than there are.
    #[error(
        "more than {} blocks or tokens that occur nowhere else; make the trace smaller, or write larger blocks",
        u32::MAX
    )]
    Exhausted,
    /// The caller is strict, and something would be changed or dropped.
    #[error("strict, so nothing written; the import would have to change or drop:{}", listed(.0))]
    Strict(Vec<Note>),
    /// A parameter is out of range.
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

impl GenError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
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
    named: Vec<(Place, String)>,
    count: usize,
}

impl Rejected {
    /// Rows rejected.
    pub fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn add(&mut self, place: &Place, reason: &dyn fmt::Display) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push((place.clone(), reason.to_string()));
        }
    }

    /// An error if any row was rejected.
    pub(crate) fn check(&mut self) -> Result<(), GenError> {
        match self.count {
            0 => Ok(()),
            _ => Err(GenError::Rejected(std::mem::take(self))),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = if self.count == 1 { "row" } else { "rows" };
        write!(out, "{} {rows} rejected, nothing written:", self.count)?;
        for (place, reason) in &self.named {
            write!(out, "\n  {place}: {reason}")?;
        }
        match self.count - self.named.len() {
            0 => Ok(()),
            more => write!(out, "\n  and {more} more"),
        }
    }
}

/// Where a row of an input stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    /// Counted from 1, where the input has lines.
    pub(crate) line: Option<usize>,
    /// Where in a nested object, such as `requests[3]`.
    pub(crate) within: String,
}

impl Place {
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

    /// The same place, further in.
    pub(crate) fn within(&self, within: &str) -> Self {
        let dot = if self.within.is_empty() { "" } else { "." };
        Self {
            within: format!("{}{dot}{within}", self.within),
            ..self.clone()
        }
    }
}

impl fmt::Display for Place {
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
