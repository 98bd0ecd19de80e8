//! What can go wrong.

use std::path::PathBuf;

use params::{Malformed, ParamError, UnknownName};

/// What went wrong while reading a model, a GPU or a measurement, or while choosing one by name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// There is no model, GPU, calibration or cost model of a name.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// The parentheses after a cost model's name do not close.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A parameter of a cost model is wrong.
    #[error("cost model `{cost_model}`: {problem}")]
    Param {
        /// The cost model.
        cost_model: &'static str,
        /// What is wrong.
        problem: ParamError,
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
    /// Something at `place` is not what it should be.
    pub fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            problem: problem.into(),
        }
    }
}
