//! What can go wrong.

use std::path::PathBuf;

/// What went wrong while reading a model, a GPU or a measurement, or while choosing one by name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// A preset was asked for by a name that does not exist.
    #[error("no {what} named \"{name}\"; valid names: {valid}")]
    UnknownName {
        /// What was looked for: "model", "GPU" or "calibration".
        what: &'static str,
        /// The name given.
        name: String,
        /// What would have been accepted, comma separated.
        valid: String,
    },
    /// A file could not be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A description is not what its format says it should be.
    #[error("{place}: {problem}")]
    Invalid {
        /// The file, with row or key where known.
        place: String,
        /// What is wrong and what was expected.
        problem: String,
    },
}

impl RooflineError {
    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        valid: impl Iterator<Item = &'a str>,
    ) -> Self {
        Self::UnknownName {
            what,
            name: name.to_owned(),
            valid: valid.collect::<Vec<_>>().join(", "),
        }
    }

    /// Something else that would have been accepted.
    pub(crate) fn or(mut self, alternative: &str) -> Self {
        if let Self::UnknownName { valid, .. } = &mut self {
            *valid += ", or ";
            *valid += alternative;
        }
        self
    }

    /// Something at `place` is not what it should be.
    pub fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            problem: problem.into(),
        }
    }
}
