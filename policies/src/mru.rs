//! Most recently used.
//!
//! Source: SGLang (`evict_policy.py`, `MRUStrategy`). The leaf that was used last goes: right for a loop longer than the
//! cache, of which it keeps a part where LRU keeps none. With bypass the last used leaf is the newcomer.
//!
//! Cost: as `lru`. Do not use it where what was used lately is used again.

use std::cmp::Reverse;

use crate::by_key::{ByKey, lru_order};
use crate::registry::{EvictionEntry, Track};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "mru",
    summary: "the leaf used last goes",
    source: "SGLang (evict_policy.py, MRUStrategy)",
    idea: "In a loop longer than the cache, what was just used is what is needed last.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "what was used lately is used again",
    params: &[],
    track: Track::Online,
    build: |_, _| {
        Box::new(ByKey::new(|leaf| {
            (Reverse(leaf.last_used), lru_order(leaf))
        }))
    },
};

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_loop_keeps_a_part() {
        let paths = asks(&["a", "b", "c", "a", "b", "c"]);
        assert_eq!(victims("mru", 2, &paths), ["", "", "c", "", "", "c"]);
    }
}
