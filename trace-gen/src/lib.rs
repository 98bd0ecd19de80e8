//! Seeded synthetic workloads, and importers of other people's formats: both give traces.

pub mod agent;
mod error;
pub mod export;
pub mod import;
pub mod inspect;
mod jsonl;
pub mod ledger;
mod text;

pub use error::{GenError, Rejected};
