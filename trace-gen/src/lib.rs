//! Seeded synthetic workloads, and importers of other people's formats: both give traces.

pub mod agentx;
mod apps;
mod arrivals;
mod conversation;
pub mod draw;
mod error;
pub mod families;
pub mod fit;
mod import;
pub mod inspect;
pub mod ledger;
pub mod mooncake;
pub mod params;
pub mod plan;
mod script;
mod service;
mod text;
mod world;

pub use error::{GenError, Rejected};
pub use import::Imported;
