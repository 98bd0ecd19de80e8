//! What can go wrong when a trace is generated.

use std::path::{Path, PathBuf};

use params::{ParamError, UnknownName};
use trace::TraceError;
use trace::synthetic::TextFault;

/// Why no trace was made. Nothing is written then.
#[derive(Debug, thiserror::Error)]
pub enum GenError {
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
    /// A file cannot be used.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A text could not be made.
    #[error(transparent)]
    Text(#[from] TextFault),
    /// A parameter does not exist or has a value outside its domain.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// There is no family of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A parameter does not fit the others.
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
            reason: source,
        }
    }
}
