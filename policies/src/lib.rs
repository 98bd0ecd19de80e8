//! Eviction and admission policies, one file each, and the registry.
//!
//! To add one, write its file (module docs: paper, idea, cost, when *not* to use it; struct; impl; `ENTRY`; tests) and
//! one line in [`EVICTION`] or [`ADMISSION`]. Command-line names, help, the conformance suite and report legends all
//! iterate the registry.
//!
//! What this crate does not know: the tree, traces, and the future.

mod adaptive;
mod aging;
mod all;
mod arc;
mod branch_points;
mod by_key;
mod chances;
mod clock;
mod continuum;
mod cost_aware;
mod density;
mod depth_lru;
mod fifo;
mod filo;
mod gdsf;
mod ghosts;
mod greedy_clock;
mod groups;
mod indexed_set;
mod kvcache_wild;
mod kvflow;
mod learned;
mod lecar;
mod lfu;
mod lhd;
mod lirs;
mod lmcache;
mod lmcache_cost;
mod lpc_like;
mod lru;
mod lru_k;
mod mru;
mod newcomers_last;
mod none;
mod params;
mod parrot;
mod per_request;
mod pgdsf;
mod priority;
mod random;
mod registry;
mod room;
mod run_table;
mod s3_fifo;
mod sae;
mod second_occurrence;
mod sieve;
mod size;
mod size_cap;
mod sketch;
mod slru;
mod survival;
mod tail_lru;
#[cfg(test)]
mod testing;
mod tinylfu;
mod two_q;
mod vllm;
mod w_tinylfu;

pub use params::{Domain, Param, ParamError, Params};
pub use registry::{
    ADMISSION, AdmissionEntry, AdmissionSpec, BuildAdmission, BuildEviction, EVICTION, Entry,
    EvictionEntry, EvictionSpec, PolicyError, Setup, Spec, Track, admission, build, eviction,
};
