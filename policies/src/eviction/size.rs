//! The largest first.
//!
//! Source: the ancestor of the GreedyDual family, which weighs size alone. A control that shows what length is worth.
//!
//! Cost: as `lru`. Do not use it where long nodes are the ones that come back, as the contexts of agents do.

use std::cmp::Reverse;

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{ByKey, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "size",
    summary: "the largest leaf node goes",
    source: "control; the ancestor of GreedyDual-Size",
    idea: "One large node makes room for many small ones.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "long nodes are the ones that come back",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(ByKey::new(|leaf| (Reverse(leaf.bytes), lru_order(leaf)))),
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
