//! Eviction policies: which leaf is evicted. One file each, in the order of the registry: to add one, add its line here.

use crate::entry::EvictionEntry;

mod lru;
mod fifo;
mod filo;
mod mru;
mod lfu;
mod slru;
mod priority;
mod random;
mod depth_lru;
mod size;
mod vllm;
mod clock;
mod sieve;
mod s3_fifo;
mod two_q;
mod lru_k;
mod arc;
mod lirs;
mod w_tinylfu;
mod gdsf;
mod lhd;
mod lecar;
mod cost_aware;
mod kvcache_wild;
mod pgdsf;
mod kvflow;
mod continuum;
mod lpc_like;
mod lmcache_cost;
mod sae;
mod tail_lru;
mod parrot;
mod learned;
mod marconi;
mod sglang_plus;
mod vllm_plus;

/// All eviction policies, the baseline first.
pub const EVICTION: &[EvictionEntry] = include!(concat!(env!("OUT_DIR"), "/eviction.rs"));
