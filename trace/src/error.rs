//! What can be wrong with a trace, each with where it is and what was expected.

use std::path::{Path, PathBuf};

use crate::memory::OverBudget;
use crate::workload::BuildError;

/// Why a trace could not be read, loaded or written. Rows count from 0.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        reason: std::io::Error,
    },
    /// The file is not Parquet, or is cut short or damaged.
    #[error("{}: not a readable Parquet file: {reason}", path.display())]
    NotParquet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A key of the file's metadata has a value that this version cannot use.
    #[error("{}: metadata `{key}` is {found}; expected {expected}", path.display())]
    Metadata {
        /// The file.
        path: PathBuf,
        /// The metadata key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A column that every trace needs is not there.
    #[error("{}: column `{column}` is missing; expected {expected}", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        expected: &'static str,
    },
    /// A column has a type that cannot hold what it is for.
    #[error("{}: column `{column}` has type {found}; expected {expected}", path.display())]
    ColumnType {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type in the file.
        found: String,
        /// The type it should have.
        expected: &'static str,
    },
    /// A value that contradicts the schema or the rest of its row.
    #[error("{}: row {row}, column `{column}`: {found}; expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The row, counted from 0.
        row: u64,
        /// The column.
        column: &'static str,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },
    /// A path that contradicts an earlier one.
    #[error("{}: row {row}: {reason}", path.display())]
    Path {
        /// The file.
        path: PathBuf,
        /// The row, counted from 0.
        row: u64,
        /// The contradiction.
        reason: BuildError,
    },
    /// Two different blocks of tokens hash to one id.
    #[error(
        "{}: row {row}: block {position} of the path has the id of a different block \
         (a 64-bit hash collision); load the trace with another block size", path.display()
    )]
    Collision {
        /// The file.
        path: PathBuf,
        /// The row, counted from 0.
        row: u64,
        /// Position in the path, counted from 0.
        position: usize,
    },
    /// The file needs more memory than it may have.
    #[error("{}: {reason}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The budget.
        reason: OverBudget,
    },
    /// The caller's block size does not suit the trace.
    #[error("{}: block size of {asked} tokens asked for; expected {expected}", path.display())]
    BlockTokens {
        /// The file.
        path: PathBuf,
        /// What the caller asked for.
        asked: u32,
        /// What would do.
        expected: String,
    },
}

impl TraceError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            reason: source,
        }
    }

    pub(crate) fn memory(path: &Path, source: OverBudget) -> Self {
        Self::Memory {
            path: path.to_owned(),
            reason: source,
        }
    }

    pub(crate) fn not_parquet(path: &Path, reason: &dyn std::fmt::Display) -> Self {
        Self::NotParquet {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn value(path: &Path, row: u64, fault: Fault) -> Self {
        Self::Value {
            path: path.to_owned(),
            row,
            column: fault.column,
            found: fault.found,
            expected: fault.expected,
        }
    }
}

/// What is wrong with a value, before file and row are known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) column: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(
        column: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            column,
            found: found.into(),
            expected: expected.into(),
        }
    }
}
