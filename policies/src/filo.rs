//! First in, last out.
//!
//! Source: SGLang (`evict_policy.py`, `FILOStrategy`). The leaf that became resident last goes. A newcomer is a leaf like
//! any other, so with bypass it is the newcomer that goes: the cache keeps what it first filled with.
//!
//! Cost: as `lru`. A control: do not use it where the working set moves.

use std::cmp::Reverse;

use crate::by_key::{ByKey, lru_order};
use crate::registry::{EvictionEntry, Track};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "filo",
    summary: "the leaf that became resident last goes",
    source: "SGLang (evict_policy.py, FILOStrategy)",
    idea: "The reverse of fifo: what filled the cache first stays. A control.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "the working set moves",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(ByKey::new(|leaf| (Reverse(leaf.created), lru_order(leaf)))),
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
