//! The deepest of the longest unused. With buckets of one request it is `lru`.

use std::cmp::Reverse;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "depth-lru",
    summary: "evicts, in the oldest bucket of last uses, the leaf that starts deepest",
    source: "control",
    idea: "A prefix near the root is shared by more paths than one far from it.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "deep nodes are the ones that are reused, as in long conversations",
    params: &[Param {
        name: "bucket",
        default: "64",
        domain: Domain::Count(1, 1_000_000_000),
        help: "requests whose last uses count as equal",
    }],
    track: Track::Online,
    build: BuildEviction::Alone(|_, params| {
        let bucket = params.count("bucket").unwrap_or(1) as u32;
        Box::new(by_key(move |leaf| {
            (
                leaf.last_used.0 / bucket,
                Reverse(leaf.depth_blocks),
                lru_order(leaf),
            )
        }))
    }),
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
