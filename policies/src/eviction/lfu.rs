//! Least frequently used. A newcomer has one use, so it is mostly the newcomer that is evicted. Ties: by last use.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lfu",
    summary: "evicts the leaf with the fewest uses",
    source: "SGLang (evict_policy.py, LFUStrategy)",
    idea: "What many requests used, many will use. Uses count while a node is resident, one per request, however many blocks \
           the node has.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "popularity moves: what was popular once stays for good",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(by_key(|leaf| (leaf.uses, lru_order(leaf))))),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn uses_count_before_recency() {
        let paths = asks(&["a", "a", "b", "c", "d", "e"]);
        assert_eq!(victims("lfu", 3, &paths), ["", "", "", "", "b", "c"]);
    }

    #[test]
    fn a_long_run_is_touched_once_a_request() {
        // By blocks, the one use of "abc" would weigh more than the two of "d".
        let paths = asks(&["d", "d", "abc", "e"]);
        assert_eq!(victims("lfu", 4, &paths), ["", "", "", "c"]);
    }
}
