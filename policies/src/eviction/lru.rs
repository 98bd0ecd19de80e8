//! LRU on a tree: the baseline.
//!
//! With room for four blocks, after the requests `ab`, `c`, `abd`, `e`:
//!
//! ```text
//!   a-b-d   last used by request 2        evicted by request 4, which needs two blocks:
//!   c       last used by request 1        first c, then d: of a leaf the tail is evicted before the head
//!   e       last used by request 3
//! ```
//!
//! Ties arise only within one path, or where SGLang's split refreshes a tail: the deeper first block, then the older creation.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::lru_order;
use crate::parts::request_order::by_request;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru",
    summary: "evicts the leaf used longest ago, tail first (the baseline)",
    source: "SGLang default (evict_policy.py, LRUStrategy); vLLM's block pool frees in the same order when requests are \
             replayed one after another",
    idea: "What was used lately is used again. Only leaves are evicted, so every prefix stays whole. Where states are saved, \
           the state of an inner node is evicted by its own last use; sglang+ and vllm+ keep such states until their leaves \
           are gone.",
    cost: "O(1) per offer, amortised",
    avoid_when: "reuse is regular but sparse, or singletons flood the cache: it keeps what was last seen, not what is reused",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(by_request(lru_order))),
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
