use std::path::PathBuf;

/// What went wrong while reading a model, a GPU or a measurement, or while choosing one by name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RooflineError {
    /// A preset was asked for by a name that does not exist.
    #[error("no {what} named \"{name}\"; valid names: {valid}{hint}")]
    UnknownName {
        /// What was looked for: "model", "GPU" or "cost model".
        what: &'static str,
        /// The name given.
        name: String,
        /// The valid names, comma separated.
        valid: String,
        /// What else would have been accepted, or empty.
        hint: &'static str,
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
        hint: &'static str,
    ) -> Self {
        let valid = valid.collect::<Vec<_>>().join(", ");
        Self::UnknownName {
            what,
            name: name.to_owned(),
            valid,
            hint,
        }
    }

    pub(crate) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid {
            place: place.into(),
            problem: problem.into(),
        }
    }
}
