//! The clock of the GreedyDual family.

use policy_api::{Candidate, NodeId, Ranked, Score, Tick};

use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::per_request::PerEvent;

/// What a leaf is worth, and its place among those worth as much.
pub(crate) type GreedyKey = (Score, LruOrder);

/// Leaves by their worth, the least first.
pub(crate) type GreedyOrder = Ranked<GreedyKey>;

/// A leaf's worth is what the clock showed at its last use plus a value. Whatever is evicted raises the clock to its worth, so that
/// what is not used grows old:
///
/// ```text
///   value   1 1 2     worth   1 1 2    clock 0
///   evict the first           - 1 2    clock 1
///   a newcomer of value 1     2 1 2    clock 1: it outlives what was as valuable, and equals the older of value 2
/// ```
pub(crate) struct GreedyClock {
    clock: f64,
    at_event: PerEvent<f64>,
}

impl GreedyClock {
    pub(crate) fn new() -> Self {
        Self {
            clock: 0.0,
            at_event: PerEvent::new(),
        }
    }

    pub(crate) fn worth(&self, leaf: &Candidate, value: f64) -> GreedyKey {
        // A split may stamp a tail before its request is noted, and a request may end after all that were: the clock is as it is.
        let at_last_use = self.at_event.noted(leaf.last_used);
        let at_last_use = at_last_use.unwrap_or(self.clock);
        (Score(at_last_use + value), lru_order(leaf))
    }

    /// Something is evicted of a node that is still in the order.
    pub(crate) fn evicted(&mut self, id: NodeId, order: &mut GreedyOrder) {
        if let Some(((Score(worth), _), first)) = order.first_entry()
            && first == id
        {
            self.clock = self.clock.max(worth);
        }
    }

    pub(crate) fn observe(&mut self, now: Tick) {
        self.at_event.note(now, self.clock);
    }
}
