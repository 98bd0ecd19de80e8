//! Seeded synthetic workloads, and importers of other people's formats: both give traces.

mod apps;
mod arrivals;
mod conversation;
pub mod draw;
mod error;
pub mod export;
pub mod families;
pub mod fit;
pub mod import;
pub mod inspect;
pub mod ledger;
pub mod params;
pub mod plan;
mod script;
mod service;
mod text;
pub mod tools;
mod world;

pub use error::{GenError, Rejected};
