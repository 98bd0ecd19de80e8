//! Families of workloads: each a structure with parameters, one file each, and the registry of them.
//!
//! A family added to the list in `single.rs` is at once in the command's help and in the tests that every family must pass.

mod agent;
mod cron;
mod fanout;
mod mapreduce;
mod mixture;
mod multi_agent;
mod oneshot;
mod presets;
mod rag;
mod scan;
mod single;
mod version_roll;

pub use presets::{PRESETS, Preset};

use crate::error::GenError;
use crate::family::Family;

/// All families.
pub fn families() -> impl Iterator<Item = &'static Family> {
    single::SINGLE.iter().copied().chain([&mixture::FAMILY])
}

/// The family of this name.
///
/// # Errors
/// Where there is none.
pub fn find(name: &str) -> Result<&'static Family, GenError> {
    let all: Vec<_> = families().collect();
    Ok(*params::find("family", &all, |family| family.name, name)?)
}
