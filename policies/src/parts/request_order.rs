//! LRU and FIFO without a heap.

use std::cmp::Reverse;
use std::collections::VecDeque;

use policy_api::{Candidate, NodeId, Ranked, Tick};

use crate::parts::keyed::{Keyed, LruOrder, Nodes, Order, Rule};
use crate::parts::node_table::NodeTable;

/// Leaves by a key that begins with a request, the smallest first.
///
/// What one request used last, or brought in, lies on one path, and of a path only the deepest node is a leaf. So hardly ever do two
/// leaves have the same request, and a row of one slot per request is in order by itself:
///
/// ```text
///   request    4   5   6   7   8   9          its first is the first slot that is taken; empty ones before it are dropped
///   slots      -   c   -   a   -   b
/// ```
///
/// What finds its slot taken, or dropped, is ranked in a heap beside it: a second candidate of one path, where states are saved, or a
/// parent older than the row, under FIFO. (A parent under LRU is never older than the leaf that was evicted below it.) So are the
/// oldest when the row is mostly empty, so that its length follows the number of leaves and not that of requests.
#[derive(Default)]
pub(crate) struct RequestOrder {
    /// The request of the first slot.
    first_request: u32,
    slots: VecDeque<Option<Slot>>,
    /// Slots that are taken.
    taken: usize,
    /// Slot of a node, as a request, if it has one.
    requests: NodeTable<u32>,
    others: Ranked<LruOrder>,
}

#[derive(Clone, Copy)]
struct Slot {
    id: NodeId,
    depth: Reverse<u32>,
    last: Tick,
}

/// The row is cut when empty slots outnumber taken ones by this factor (and this number).
const EMPTY_FACTOR: usize = 8;
const EMPTY_FLOOR: usize = 1024;

impl RequestOrder {
    fn slot(&mut self, request: u32) -> Option<&mut Option<Slot>> {
        let place = request.checked_sub(self.first_request)?;
        self.slots.get_mut(place as usize)
    }

    /// The slot of a request, made if it is behind the last; `None` if it was dropped.
    fn make_slot(&mut self, request: u32) -> Option<&mut Option<Slot>> {
        if self.slots.is_empty() {
            self.first_request = request;
        }
        let place = request.checked_sub(self.first_request)? as usize;
        if place > self.slots.len() + EMPTY_FLOOR {
            // Far ahead of all others: not worth as many empty slots.
            return None;
        }
        if place >= self.slots.len() {
            self.slots.resize(place + 1, None);
        }
        self.slots.get_mut(place)
    }

    /// Moves the oldest leaves to the others, until the row is short enough.
    fn cut(&mut self) {
        while self.slots.len() > EMPTY_FLOOR + EMPTY_FACTOR * self.taken {
            if let Some(Some(Slot { id, depth, last })) = self.slots.pop_front() {
                self.taken -= 1;
                self.requests.remove(id);
                self.others.put(id, (Tick(self.first_request), depth, last));
            }
            self.first_request += 1;
        }
    }
}

impl Order for RequestOrder {
    type Key = LruOrder;

    fn put(&mut self, id: NodeId, (request, depth, last): LruOrder) {
        self.remove(id);
        match self.make_slot(request.0) {
            Some(slot @ None) => {
                *slot = Some(Slot { id, depth, last });
                self.taken += 1;
                self.requests.put(id, request.0);
                self.cut();
            }
            _ => self.others.put(id, (request, depth, last)),
        }
    }

    fn remove(&mut self, id: NodeId) {
        match self.requests.remove(id) {
            Some(request) => {
                if let Some(slot) = self.slot(request) {
                    *slot = None;
                    self.taken -= 1;
                }
            }
            None => self.others.remove(id),
        }
    }

    fn first(&mut self) -> Option<NodeId> {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first_request += 1;
        }
        let slotted = self.slots.front().copied().flatten();
        let slotted =
            slotted.map(|Slot { id, depth, last }| ((Tick(self.first_request), depth, last), id));
        match (slotted, self.others.first_entry()) {
            (Some(slotted), Some(other)) => Some(slotted.min(other).1),
            (slotted, other) => slotted.or(other).map(|(_, id)| id),
        }
    }
}

/// The rule of a key that begins with a request.
pub(crate) struct ByRequest<F>(F);

impl<F: Fn(&Candidate) -> LruOrder> Rule for ByRequest<F> {
    type Order = RequestOrder;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> LruOrder {
        (self.0)(leaf)
    }
}

/// Evicts the leaf with the smallest key. The key may change only when the facts of the leaf do.
pub(crate) fn by_request<F: Fn(&Candidate) -> LruOrder>(key: F) -> Keyed<ByRequest<F>> {
    Keyed::new(ByRequest(key))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_row_does_not_grow_with_the_number_of_requests() {
        let mut order = RequestOrder::default();
        order.put(NodeId(0), (Tick(0), Reverse(0), Tick(0)));
        for request in 1..100_000 {
            order.put(NodeId(1), (Tick(request), Reverse(0), Tick(0)));
        }
        assert!(order.slots.len() <= EMPTY_FLOOR + 2 * EMPTY_FACTOR);
        assert_eq!(order.first(), Some(NodeId(0)));
        order.put(NodeId(2), (Tick(u32::MAX), Reverse(0), Tick(0)));
        order.remove(NodeId(0));
        assert_eq!(order.first(), Some(NodeId(1)));
    }

    proptest! {
        /// Against the order that serves any key, whatever requests the keys begin with.
        #[test]
        fn agrees_with_any_order(
            steps in prop::collection::vec((0u32..12, prop::option::of((0u32..9, 0u32..3)), any::<bool>()), 1..200),
        ) {
            let mut order = RequestOrder::default();
            let mut ranked = Ranked::new();
            for (now, (id, key, newest)) in (0..).zip(steps) {
                match key {
                    Some((back, depth)) => {
                        let request = if newest { now } else { u32::saturating_sub(now, back) };
                        order.put(NodeId(id), (Tick(request), Reverse(depth), Tick(0)));
                        ranked.put(NodeId(id), (Tick(request), Reverse(depth), Tick(0)));
                    }
                    None => {
                        order.remove(NodeId(id));
                        ranked.remove(NodeId(id));
                    }
                }
                if now % 3 != 0 {
                    prop_assert_eq!(order.first(), ranked.first());
                }
            }
        }
    }
}
