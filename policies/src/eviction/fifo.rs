//! First in, first out. A tail that was evicted and is admitted again counts from its return.

use std::cmp::Reverse;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::request_order::by_request;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "fifo",
    summary: "evicts the leaf that became resident first, whatever its use",
    source: "SGLang (evict_policy.py, FIFOStrategy)",
    idea: "Age since admission, not since use. A control that shows what recency is worth.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "anything is reused",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| {
        // A path's blocks share a creation: the deeper are evicted first, whichever of them were used since.
        Box::new(by_request(|leaf| {
            (leaf.created, Reverse(leaf.depth_blocks), leaf.last_used)
        }))
    }),
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
