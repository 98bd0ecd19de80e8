//! Traces from and into other people's formats, tools that make traces of traces, and what a trace holds.

mod error;
pub mod export;
pub mod import;
pub mod inspect;
mod note;
pub mod tools;

pub use error::{ImportError, Rejected};
pub use note::{Action, Imported, Note};
