//! S3-FIFO: three first-in-first-out queues.
//!
//! ```text
//!   newcomer --- remembered? --- yes --------------------------------> main queue --- used since? --- yes: one more round
//!                    |                                                    ^                             (three at most)
//!                    no ---> small queue, --- used twice since? --- yes --+               no: evicted
//!                            a tenth of                    no: evicted, and remembered
//!                            the cache
//! ```
//!
//! The ghost list is as long as the main queue. Sizes are in blocks. A node that has children cannot be evicted and would never
//! reach the end of its queue, so it moves from the small to the main queue with its second use.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::chances::Chances;
use crate::parts::ghosts::Ghosts;
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "s3-fifo",
    summary: "a small queue for newcomers, a main queue for what was used, and ghosts",
    source: "Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023",
    idea: "Most newcomers are never used again: let them pass through a tenth of the cache. What was used twice there, or \
           is admitted again soon after it was evicted, moves to the main queue, where each use is one more round (three at \
           most).",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "reuse comes later than the small queue and the ghosts reach back",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(NewcomersLast::new(S3Fifo::new(
            context.cache.capacity_blocks(),
        )))
    }),
};

/// Uses after its admission that move a node from the small to the main queue.
const USES_TO_MOVE: u32 = 2;
/// Chances of a node in the main queue.
const MOST_CHANCES: u32 = 3;

/// A node in the small queue.
#[derive(Clone, Copy)]
struct Small {
    place: u64,
    blocks: u32,
    uses: u32,
}

struct S3Fifo {
    small_capacity: u64,
    small: NodeTable<Small>,
    small_blocks: u64,
    places: u64,
    /// Leaves of the small queue that go at its end, and those that move, by place.
    going: Ranked<u64>,
    moving: Ranked<u64>,
    main: Chances,
    ghosts: Ghosts<()>,
    ghost_capacity: u64,
}

impl S3Fifo {
    fn new(capacity_blocks: u64) -> Self {
        let small_capacity = (capacity_blocks / 10).max(1);
        Self {
            small_capacity,
            small: NodeTable::new(),
            small_blocks: 0,
            places: 0,
            going: Ranked::new(),
            moving: Ranked::new(),
            main: Chances::new(MOST_CHANCES),
            ghosts: Ghosts::new(),
            ghost_capacity: capacity_blocks.saturating_sub(small_capacity),
        }
    }

    fn join(&mut self, leaf: &Candidate) {
        if self.ghosts.take_returned(leaf.first_block).is_some() {
            self.main.join(leaf.id, leaf.uses);
            return;
        }
        self.places += 1;
        self.small_blocks += u64::from(leaf.blocks);
        let state = Small {
            place: self.places,
            blocks: leaf.blocks,
            uses: leaf.uses,
        };
        self.small.put(leaf.id, state);
    }

    fn offer_small(&mut self, leaf: &Candidate) {
        if let Some(state) = self.small.get_mut(leaf.id) {
            state.blocks = leaf.blocks;
            state.uses = leaf.uses;
            let queue = if leaf.uses > USES_TO_MOVE {
                &mut self.moving
            } else {
                &mut self.going
            };
            queue.put(leaf.id, state.place);
        }
    }

    /// The end of the small queue was reached: what it passed moves to the main queue, where only later uses are chances.
    fn pass_small(&mut self, before: u64) {
        while let Some((place, id)) = self.moving.first_entry()
            && place < before
        {
            self.moving.remove(id);
            if let Some(state) = self.small.remove(id) {
                self.small_blocks -= u64::from(state.blocks);
                self.main.join(id, state.uses);
                self.main.offer(id, state.uses);
            }
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.going.remove(id);
        self.moving.remove(id);
        self.main.withdraw(id);
    }

    fn small_is_full(&self) -> bool {
        self.small_blocks >= self.small_capacity
    }
}

impl EvictionPolicy for S3Fifo {
    fn offer(&mut self, leaf: &Candidate) {
        self.take_off(leaf.id);
        if self.small.get(leaf.id).is_none() && !self.main.contains(leaf.id) {
            self.join(leaf);
        }
        self.offer_small(leaf);
        self.main.offer(leaf.id, leaf.uses);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let small = if self.small_is_full() {
            self.going.first()
        } else {
            None
        };
        small
            .or_else(|| self.main.first())
            .or_else(|| self.going.first())
            .or_else(|| self.moving.first())
            .map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if let Some(&state) = self.small.get(evicted.id) {
            self.small_blocks -= u64::from(evicted.blocks);
            self.ghosts
                .remember(evicted.first_block, evicted.blocks, ());
            self.ghosts.trim(self.ghost_capacity);
            self.pass_small(state.place);
            if whole {
                self.small.remove(evicted.id);
            }
        } else {
            self.main.evicted(evicted.id, whole);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.small.split(head, tail);
        self.main.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        self.take_off(head);
        self.main.remove(head);
        if self.small.remove(head).is_some() {
            self.small_blocks -= u64::from(head_blocks);
        }
        if let Some(state) = self.small.get_mut(tail) {
            state.blocks += head_blocks;
            self.small_blocks += u64::from(head_blocks);
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.ghosts.look_up(request);
        // The last node may be a leaf, whose turn comes at the end of the small queue.
        let inner = nodes.split_last().map_or(nodes, |(_, inner)| inner);
        for node in inner.iter().filter(|node| node.uses >= USES_TO_MOVE) {
            if self.small.remove(node.id).is_some() {
                self.small_blocks -= u64::from(node.blocks);
                self.main.join(node.id, node.uses + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn newcomers_pass_through_the_small_queue() {
        // "a" is used twice more and moves; b, c, d, e pass.
        let paths = asks(&["a", "a", "a", "b", "c", "d", "e", "f"]);
        assert_eq!(victims("s3-fifo", 3, &paths)[5..], ["b", "c", "d"]);
    }

    #[test]
    fn one_more_use_is_not_enough_to_move() {
        let paths = asks(&["a", "a", "b", "c", "d"]);
        assert_eq!(victims("s3-fifo", 3, &paths)[4], "a");
    }

    #[test]
    fn what_comes_back_soon_enters_the_main_queue() {
        // "a" goes to the ghosts and comes back to the main queue: then c, d, e pass and it stays.
        let paths = asks(&["a", "b", "c", "d", "a", "e", "f", "g"]);
        assert_eq!(
            victims("s3-fifo", 3, &paths)[3..],
            ["a", "b", "c", "d", "e"]
        );
    }

    #[test]
    fn a_prefix_that_is_used_moves_though_it_is_no_leaf() {
        // The prefix "x" moves with "xb", so that once its children are gone c goes before it.
        let paths = asks(&["xa", "xb", "xd", "c", "e", "f", "g"]);
        assert_eq!(victims("s3-fifo", 4, &paths)[3..], ["a", "b", "d", "c"]);
    }
}
