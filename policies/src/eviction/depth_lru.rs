//! The deepest of the longest unused.
//!
//! Source: control. Last uses are put in buckets of so many requests; in the oldest bucket the leaf that starts deepest
//! goes. With buckets of one request it is `lru`.
//!
//! Cost: as `lru`. Do not use it where deep nodes are the ones that come back, as in long conversations.

use std::cmp::Reverse;

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{ByKey, lru_order};
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "depth-lru",
    summary: "in the oldest bucket of last uses, the deepest leaf goes",
    source: "control",
    idea: "A prefix near the root is shared by more paths than one far from it.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "deep nodes are the ones that come back, as in long conversations",
    params: &[Param {
        name: "bucket",
        default: "64",
        domain: Domain::Count(1, 1_000_000_000),
        help: "requests whose last uses count as equal",
    }],
    track: Track::Online,
    build: |_, params| {
        let bucket = params.count("bucket").unwrap_or(1) as u32;
        Box::new(ByKey::new(move |leaf| {
            (
                leaf.last_used.0 / bucket,
                Reverse(leaf.depth_blocks),
                lru_order(leaf),
            )
        }))
    },
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn depth_decides_within_a_bucket() {
        let paths = asks(&["x", "ab", "abc", "y", "z"]);
        assert_eq!(
            victims("depth-lru(bucket=4)", 4, &paths),
            ["", "", "", "c", "x"]
        );
        assert_eq!(
            victims("depth-lru(bucket=1)", 4, &paths),
            ["", "", "", "x", "c"]
        );
    }
}
