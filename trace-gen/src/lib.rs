//! Seeded synthetic workloads: families of generators, named presets, plans of several, and plans fitted to a trace.

mod apps;
mod arrivals;
mod context;
mod conversation;
pub mod draw;
mod error;
pub mod families;
mod family;
pub mod fit;
pub mod ledger;
mod parameters;
pub mod plan;
mod script;
mod service;
mod world;

pub use context::GeneratorContext;
pub use error::GenError;
pub use family::Family;
