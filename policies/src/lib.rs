//! Eviction and admission policies, one file each, and the registry.
//!
//! # Adding a policy
//!
//! One file and one line:
//!
//! 1. `src/eviction/mine.rs` or `src/admission/mine.rs`, with a `pub(crate) const ENTRY` of type [`EvictionEntry`] or
//!    [`AdmissionEntry`] in it. What people should know (source, idea, cost, when not to use it) is said there, once; module
//!    docs add how the policy differs from its paper, or a drawn example.
//! 2. `mod mine;` in the `mod.rs` beside it.
//!
//! [`EVICTION`] and [`ADMISSION`] are made from these lines. Command-line names, help, `--policy every` and the conformance
//! suite (`tests/it`) iterate them. The tables in `docs` are made anew by their scripts; a test notices that they are stale.
//!
//! Most eviction policies are an order of leaves by one key. Those give the key, and what they keep of each node, to
//! `parts::keyed`, and are a few lines. `eviction/lru.rs` is the shortest, `eviction/parrot.rs` one that keeps something of
//! each node, `eviction/sieve.rs` one that is more than a key.
//!
//! An eviction policy that was made for one admission policy says so in its `ENTRY` ([`BuildEviction::With`]), and one object that
//! evicts and admits is an entry of its own kind ([`BuildEviction::Both`]).
//!
//! # What this crate does not know
//!
//! The tree, traces and the future. Only Marconi's tuner uses a cache: it replays a window of requests in one of its own.

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
    default_factory, eviction, factories, factory,
};
