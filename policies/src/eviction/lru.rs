//! Tree-aware least recently used: the baseline.
//!
//! Source: SGLang's default (`evict_policy.py`, `LRUStrategy`); vLLM's block pool frees in the same order in atomic
//! replay. The leaf that was used longest ago goes first, its tail before its head, so that what is left is always a
//! prefix. Ties (which arise only within one path, or where SGLang's split refreshes a tail): the deeper first block,
//! then the older creation.
//!
//! Where a model resumes from saved states, the state of an inner node is a candidate like any leaf and goes by its own last use;
//! `sglang+` and `vllm+` leave such states alone until their leaves are gone.
//!
//! Cost: one key per offer, O(log leaves) amortised. Do not use it where reuse is regular but sparse, or where singletons
//! flood the cache: it keeps what was last seen, not what comes back.

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{ByKey, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru",
    summary: "the leaf used longest ago goes, tail first (the baseline)",
    source: "SGLang default (evict_policy.py, LRUStrategy)",
    idea: "What was used lately is used again. Only leaves go, so every prefix stays whole; where states are saved, one above \
           a leaf may go alone.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "reuse is regular but sparse, or singletons flood the cache",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(ByKey::new(lru_order)),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn the_longest_unused_leaf_goes_tail_first() {
        let paths = asks(&["ab", "c", "abd", "e", "fg"]);
        assert_eq!(victims("lru", 4, &paths), ["", "", "", "c", "db"]);
    }
}
