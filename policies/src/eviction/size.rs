//! The largest first.

use std::cmp::Reverse;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "size",
    summary: "evicts the largest leaf node",
    source: "control; the ancestor of GreedyDual-Size, which weighs size alone",
    idea: "One large node makes room for many small ones.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "long nodes are the ones that are reused, as the contexts of agents are",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| {
        Box::new(by_key(|leaf| (Reverse(leaf.bytes), lru_order(leaf))))
    }),
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn the_longest_run_shrinks_until_another_is_longer() {
        let paths = asks(&["abc", "de", "f", "g", "h", "i"]);
        assert_eq!(victims("size", 6, &paths), ["", "", "", "c", "b", "e"]);
    }
}
