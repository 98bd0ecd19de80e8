//! First in, last out. A newcomer is a leaf like any other, so it is the newcomer that is evicted.

use std::cmp::Reverse;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "filo",
    summary: "evicts the leaf that became resident last",
    source: "SGLang (evict_policy.py, FILOStrategy)",
    idea: "The reverse of fifo: what filled the cache first stays. A control.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "the working set moves",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| {
        Box::new(by_key(|leaf| (Reverse(leaf.created), lru_order(leaf))))
    }),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn the_newcomer_goes() {
        let paths = asks(&["a", "b", "a", "c", "bd"]);
        assert_eq!(victims("filo", 2, &paths), ["", "", "", "c", "d"]);
    }
}
