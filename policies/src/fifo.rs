//! First in, first out.
//!
//! Source: SGLang (`evict_policy.py`, `FIFOStrategy`). The leaf that became resident first goes, its tail before its
//! head. Use never changes the order; a tail that was evicted and came back counts from its return.
//!
//! Cost: as `lru`. It is a control: do not use it where anything is reused, except to see what recency is worth.

use std::cmp::Reverse;

use crate::by_key::ByKey;
use crate::registry::{EvictionEntry, Track};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "fifo",
    summary: "the leaf that became resident first goes, whatever its use",
    source: "SGLang (evict_policy.py, FIFOStrategy)",
    idea: "Age since admission, not since use. A control that shows what recency is worth.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "anything is reused",
    params: &[],
    track: Track::Online,
    build: |_, _| {
        // A path's blocks share a creation: the deeper go first, whichever of them were used since.
        Box::new(ByKey::new(|leaf| {
            (leaf.created, Reverse(leaf.depth_blocks), leaf.last_used)
        }))
    },
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn use_does_not_help() {
        let paths = asks(&["a", "b", "a", "c", "d"]);
        assert_eq!(victims("fifo", 2, &paths), ["", "", "", "a", "b"]);
    }

    #[test]
    fn a_tail_that_comes_back_counts_from_its_return() {
        // "ab" loses b to c and gets it back, so that c is older than b; a, which never went, is the oldest of all.
        let paths = asks(&["ab", "c", "ab", "d", "e"]);
        assert_eq!(victims("fifo", 2, &paths), ["", "b", "c", "b", "a"]);
    }
}
