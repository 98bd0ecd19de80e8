//! Seeded synthetic workloads, and importers of other people's formats: both give traces.

pub mod agent;
pub mod agentx;
mod error;
mod import;
pub mod inspect;
pub mod ledger;
pub mod mooncake;
mod text;

pub use error::{GenError, Rejected};
pub use import::Imported;
