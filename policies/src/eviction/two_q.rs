//! 2Q: one first-in-first-out queue for newcomers, one LRU list for what was admitted again. The full version, with Kin = 1/4 and
//! Kout = 1/2 of the cache:
//!
//! ```text
//!   newcomer ---> queue (a use changes nothing) ---> evicted, and remembered ---> admitted again ---> main list (LRU) ---> evicted
//! ```
//!
//! While the queue is longer than Kin it is evicted from, else the main list. Sizes are in blocks. Nodes with children count where
//! they are and cannot be evicted; the leaves below them can.

use std::cmp::Reverse;

use policy_api::{
    Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim, WithdrawReason,
};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::ghosts::Ghosts;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "2q",
    summary: "evicts newcomers in a queue; keeps what was admitted again after an eviction by last use",
    source: "Johnson and Shasha, 2Q: a low overhead high performance buffer management replacement algorithm, VLDB 1994",
    idea: "A use while the first is still fresh proves nothing: only what is asked for again after it left the queue enters the \
           main list.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "reuse is soon and only once, as by the next turn of a conversation",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(NewcomersLast::new(TwoQ::new(
            context.cache.capacity_blocks(),
        )))
    }),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum TwoQSegment {
    Queue,
    Main,
}

struct TwoQ {
    queue_capacity: u64,
    ghost_capacity: u64,
    segments: NodeTable<TwoQSegment>,
    /// Blocks of all nodes of the queue, evictable or not.
    queue_blocks: u64,
    queue: Ranked<(Tick, Reverse<u32>)>,
    main: Ranked<LruOrder>,
    ghosts: Ghosts<()>,
}

impl TwoQ {
    fn new(capacity_blocks: u64) -> Self {
        Self {
            queue_capacity: capacity_blocks / 4,
            ghost_capacity: capacity_blocks / 2,
            segments: NodeTable::new(),
            queue_blocks: 0,
            queue: Ranked::new(),
            main: Ranked::new(),
            ghosts: Ghosts::new(),
        }
    }

    fn join(&mut self, leaf: &Candidate) -> TwoQSegment {
        let segment = if self.ghosts.take_returned(leaf.first_block).is_some() {
            TwoQSegment::Main
        } else {
            self.queue_blocks += u64::from(leaf.blocks);
            TwoQSegment::Queue
        };
        self.segments.put(leaf.id, segment);
        segment
    }

    fn take_off(&mut self, id: NodeId) {
        self.queue.remove(id);
        self.main.remove(id);
    }
}

impl EvictionPolicy for TwoQ {
    fn offer(&mut self, leaf: &Candidate) {
        let segment = match self.segments.get(leaf.id) {
            Some(segment) => *segment,
            None => self.join(leaf),
        };
        match segment {
            TwoQSegment::Queue => {
                let place = (leaf.created, Reverse(leaf.depth_blocks));
                self.queue.put(leaf.id, place);
            }
            TwoQSegment::Main => self.main.put(leaf.id, lru_order(leaf)),
        }
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let (queue, main) = (self.queue.first(), self.main.first());
        let first = if self.queue_blocks > self.queue_capacity {
            queue.or(main)
        } else {
            main.or(queue)
        };
        first.map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if self.segments.get(evicted.id) == Some(&TwoQSegment::Queue) {
            self.queue_blocks -= u64::from(evicted.blocks);
            self.ghosts
                .remember(evicted.first_block, evicted.blocks, ());
            self.ghosts.trim(self.ghost_capacity);
        }
        if whole {
            self.segments.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.segments.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        if self.segments.remove(head) == Some(TwoQSegment::Queue) {
            self.queue_blocks -= u64::from(head_blocks);
        }
        if self.segments.get(tail) == Some(&TwoQSegment::Queue) {
            self.queue_blocks += u64::from(head_blocks);
        }
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.ghosts.look_up(request);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn what_comes_back_after_it_went_is_kept() {
        // Kin = 1, Kout = 2. "b" comes back while it is remembered; from then on the queue gives in its order.
        let paths = asks(&["a", "b", "c", "d", "e", "f", "b", "g", "h", "i", "j"]);
        assert_eq!(
            victims("2q", 4, &paths)[4..],
            ["a", "b", "c", "d", "e", "f", "g"]
        );
    }

    #[test]
    fn a_use_in_the_queue_changes_nothing() {
        let paths = asks(&["a", "b", "a", "a", "c", "d", "e"]);
        assert_eq!(victims("2q", 4, &paths)[6], "a");
    }

    #[test]
    fn a_short_queue_does_not_give() {
        // Kin = 1. a, b, c come back and are main; then the queue holds no more than one and the main list gives.
        let paths = asks(&["a", "b", "c", "d", "ef", "a", "b", "g", "h"]);
        // At "ef" a and b go; at a, c; at b, d; then the queue is "ef", which gives f and e; then g, which is Kin.
        assert_eq!(victims("2q", 4, &paths)[4..], ["ab", "c", "d", "f", "e"]);
    }
}
