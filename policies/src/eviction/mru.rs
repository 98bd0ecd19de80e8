//! Most recently used. A newcomer is the leaf used last, so it is the newcomer that is evicted.

use std::cmp::Reverse;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "mru",
    summary: "evicts the leaf used last",
    source: "SGLang (evict_policy.py, MRUStrategy)",
    idea: "In a loop longer than the cache, what was just used is needed last: a part of the loop stays, where LRU keeps none.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "what was used lately is used again",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| {
        Box::new(by_key(|leaf| (Reverse(leaf.last_used), lru_order(leaf))))
    }),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_loop_keeps_a_part() {
        let paths = asks(&["a", "b", "c", "a", "b", "c"]);
        assert_eq!(victims("mru", 2, &paths), ["", "", "c", "", "", "c"]);
    }
}
