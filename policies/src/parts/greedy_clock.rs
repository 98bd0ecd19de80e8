//! The clock of the GreedyDual family.

use policy_api::{Candidate, NodeId, Ranked, Score, Tick};

use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::per_request::PerEvent;

/// Ranks leaves by their worth, which is what the clock showed at its last use plus a value. The clock is raised to the worth of what goes,
/// so that whatever is not used grows old.
pub(crate) struct GreedyClock {
    clock: f64,
    at_event: PerEvent<f64>,
    ranked: Ranked<(Score, LruOrder)>,
}

impl GreedyClock {
    pub(crate) fn new() -> Self {
        Self {
            clock: 0.0,
            at_event: PerEvent::new(),
            ranked: Ranked::new(),
        }
    }

    pub(crate) fn offer(&mut self, leaf: &Candidate, value: f64) {
        let worth = self.at_event.at(leaf.last_used) + value;
        self.ranked.put(leaf.id, (Score(worth), lru_order(leaf)));
    }

    pub(crate) fn withdraw(&mut self, id: NodeId) {
        self.ranked.remove(id);
    }

    pub(crate) fn first(&mut self) -> Option<NodeId> {
        self.ranked.first()
    }

    pub(crate) fn evicted(&mut self, id: NodeId) {
        if let Some(((Score(worth), _), first)) = self.ranked.first_entry()
            && first == id
        {
            self.clock = self.clock.max(worth);
        }
        self.ranked.remove(id);
    }

    pub(crate) fn observe(&mut self, now: Tick) {
        self.at_event.note(now, self.clock);
    }
}
