//! Least frequently used, counted while resident.
//!
//! Source: SGLang (`evict_policy.py`, `LFUStrategy`). The leaf that the fewest requests touched since it became resident
//! goes, ties by last use. One request is one touch of a node, however many blocks it has.
//!
//! Cost: as `lru`. Do not use it where popularity moves: what was popular once stays, and since a newcomer has one use, it
//! is the newcomer that goes.

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{ByKey, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lfu",
    summary: "the leaf with the fewest uses goes",
    source: "SGLang (evict_policy.py, LFUStrategy)",
    idea: "What many requests used, many will use.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "popularity moves: what was popular once stays for good",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(ByKey::new(|leaf| (leaf.uses, lru_order(leaf)))),
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
