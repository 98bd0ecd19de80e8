//! First in, first out.
//!
//! Source: SGLang (`evict_policy.py`, `FIFOStrategy`). The leaf that became resident first goes, its tail before its
//! head. Use never changes the order; a tail that was evicted and came back counts from its return.
//!
//! Cost: as `lru`. It is a control: do not use it where anything is reused, except to see what recency is worth.

use std::cmp::Reverse;

use policy_api::{Candidate, EvictionPolicy, Ranked, RunId, Victim, Why};

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
    build: |_, _| Box::new(Fifo::default()),
};

#[derive(Default)]
struct Fifo {
    ranked: Ranked<(u32, Reverse<u32>, u32)>,
}

impl EvictionPolicy for Fifo {
    fn offer(&mut self, leaf: &Candidate) {
        // A path's blocks share a creation: the deeper go first, whichever of them were used since.
        self.ranked.put(
            leaf.id,
            (leaf.created, Reverse(leaf.depth_blocks), leaf.last_used),
        );
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, _: bool) {
        self.ranked.remove(gone.id);
    }
}
