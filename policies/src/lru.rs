//! Tree-aware least recently used: the baseline.
//!
//! Source: SGLang's default (`evict_policy.py`, `LRUStrategy`); vLLM's block pool frees in the same order in atomic
//! replay. The leaf that was used longest ago goes first, its tail before its head, so that what is left is always a
//! prefix. Ties (which arise only within one path, or where SGLang's split refreshes a tail): the deeper first block,
//! then the older creation.
//!
//! Cost: one key per offer, O(log leaves) amortised. Do not use it where reuse is regular but sparse, or where singletons
//! flood the cache: it keeps what was last seen, not what comes back.

use std::cmp::Reverse;

use policy_api::{Candidate, EvictionPolicy, Ranked, RunId, Victim, Why};

use crate::registry::{EvictionEntry, Track};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru",
    summary: "the leaf used longest ago goes, tail first (the baseline)",
    source: "SGLang default (evict_policy.py, LRUStrategy)",
    idea: "What was used lately is used again. Only leaves go, so every prefix stays whole.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "reuse is regular but sparse, or singletons flood the cache",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Lru::default()),
};

#[derive(Default)]
struct Lru {
    ranked: Ranked<(u32, Reverse<u32>, u32)>,
}

impl EvictionPolicy for Lru {
    fn offer(&mut self, leaf: &Candidate) {
        self.ranked.put(
            leaf.id,
            (leaf.last_used, Reverse(leaf.depth_blocks), leaf.created),
        );
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, _: bool) {
        self.ranked.remove(gone.id);
    }
}
