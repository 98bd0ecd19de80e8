//! Eviction and admission policies, one file each, and the registry.
//!
//! To add one, write its file in `eviction` or `admission` (module docs: paper, idea, cost, when *not* to use it;
//! struct; impl; `ENTRY`; tests) and one line in [`EVICTION`] or [`ADMISSION`]. Command-line names, help, the
//! conformance suite and report legends all iterate the registry.
//!
//! What this crate does not know: the tree (Marconi's tuner apart, which replays a window in a cache of its own), traces, and
//! the future.

mod admission;
mod entry;
mod eviction;
mod parts;
mod registry;
#[cfg(test)]
mod testing;

pub use cache::{PolicyContext, PolicyFactory, Track};
pub use entry::{AdmissionEntry, BuildAdmission, BuildEviction, Entry, EvictionEntry};
pub use params::{Domain, Param, ParamError, Params};
pub use registry::{
    ADMISSION, AdmissionSpec, EVICTION, EvictionSpec, PolicyError, Spec, admission, build,
    eviction, factories, factory, partner,
};
