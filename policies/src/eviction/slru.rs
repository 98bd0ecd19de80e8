//! Segmented LRU: leaves used once, then protected ones; within both the longest unused first.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "slru",
    summary: "evicts leaves used twice last; among equals by last use",
    source: "SGLang (evict_policy.py, SLRUStrategy, threshold 2)",
    idea: "A second use is what tells a prefix worth keeping from a singleton.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "popularity moves: nothing leaves the protected segment while a newcomer is there",
    params: &[Param {
        name: "threshold",
        default: "2",
        domain: Domain::Count(1, 1_000_000),
        help: "uses from which a leaf is protected",
    }],
    track: Track::Online,
    build: BuildEviction::Alone(|_, params| {
        let threshold = params.count("threshold").unwrap_or_default();
        Box::new(by_key(move |leaf| {
            (u64::from(leaf.uses) >= threshold, lru_order(leaf))
        }))
    }),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_second_use_protects() {
        let paths = asks(&["a", "a", "b", "c", "d", "b", "e"]);
        assert_eq!(victims("slru", 3, &paths), ["", "", "", "", "b", "c", "d"]);
    }

    #[test]
    fn a_third_use_adds_nothing() {
        // "a" has three uses and "b" two, but "a" is the older when "bc" makes both end.
        let paths = asks(&["a", "a", "a", "b", "b", "c"]);
        assert_eq!(victims("slru(threshold=1)", 2, &paths)[5], "a");
        assert_eq!(victims("slru", 2, &paths)[5], "c");
    }
}
