//! What an import did to the rows of its input, told in the same words for every format.

use std::fmt;

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Requests written.
    pub requests: u64,
    /// Sessions they belong to.
    pub sessions: u64,
    /// What was kept, changed and dropped, and why.
    pub notes: Vec<Note>,
}

/// One thing that an import did to the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What sort of thing.
    pub action: Action,
    /// How many rows, what, and why: a sentence.
    pub text: String,
}

/// What sort of thing an import did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Follows from the format, for any input: no fault of this one.
    Format,
    /// Kept as it is, but worth knowing.
    Kept,
    /// Changed, because it is not as the format says. Refused where the caller is strict.
    Changed,
    /// Left out, because nothing can be made of it. Refused where the caller is strict.
    Dropped,
}

impl fmt::Display for Note {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Format => "format",
            Action::Kept => "kept",
            Action::Changed => "changed",
            Action::Dropped => "dropped",
        };
        write!(out, "{action:<8} {}", self.text)
    }
}
