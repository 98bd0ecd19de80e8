//! Eviction and admission policies, one file each, and the registry.
//!
//! To add one, write its file (module docs: paper, idea, cost, when *not* to use it; struct; impl; `ENTRY`; tests) and
//! one line in [`EVICTION`] or [`ADMISSION`]. Command-line names, help, the conformance suite and report legends all
//! iterate the registry.
//!
//! What this crate does not know: the tree, traces, and the future.

mod all;
mod fifo;
mod lru;
mod none;
mod params;
mod registry;

pub use params::{Domain, Param, ParamError, Params};
pub use registry::{
    ADMISSION, AdmissionEntry, AdmissionSpec, BuildAdmission, BuildEviction, EVICTION, Entry,
    EvictionEntry, EvictionSpec, PolicyError, Setup, Spec, Track, admission, build, eviction,
};
