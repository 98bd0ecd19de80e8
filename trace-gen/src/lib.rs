//! Seeded synthetic workloads: families of generators, named presets, plans of several, and plans fitted to a trace.

mod apps;
mod arrivals;
mod conversation;
pub mod draw;
mod error;
pub mod families;
pub mod fit;
pub mod ledger;
pub mod params;
pub mod plan;
mod script;
mod service;
mod world;

pub use error::GenError;
