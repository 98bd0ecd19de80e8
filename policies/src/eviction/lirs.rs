//! LIRS: by the distance between uses, not by the last use.
//!
//! ```text
//!   LIR   the last two uses were close: all of the cache but a hundredth, oldest first     a ... d
//!   HIR   the others: pass through that hundredth in a queue, and are evicted              x y
//! ```
//!
//! A HIR node that is used again while its last use is younger than that of the oldest LIR node becomes LIR, and the oldest LIR
//! nodes become HIR. What was evicted is remembered for as many blocks as the cache has, and counts too.
//!
//! The paper's stack holds exactly what was used since the oldest LIR node, so that one comparison of times replaces it. The oldest LIR
//! node is looked for among leaves: one with children cannot be evicted. Sizes are in blocks.

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
    name: "lirs",
    summary: "keeps nodes whose last two uses were close; the others pass through a hundredth of the cache",
    source: "Jiang and Zhang, LIRS: an efficient low inter-reference recency set replacement policy, SIGMETRICS 2002",
    idea: "The distance between the last two uses tells what is reused sooner than the oldest favourite; the last use \
           alone does not.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "the working set moves quickly",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(NewcomersLast::new(Lirs::new(
            context.cache.capacity_blocks(),
        )))
    }),
};

#[derive(Clone, Copy)]
struct LirsState {
    /// Its last two uses were close.
    low: bool,
    /// When it entered the queue of the others.
    queued: u64,
}

struct Lirs {
    capacity: u64,
    low_capacity: u64,
    nodes: NodeTable<LirsState>,
    /// Blocks of all LIR nodes, evictable or not; about so many where requests overlap.
    low_blocks: u64,
    low: Ranked<LruOrder>,
    low_leaves: NodeTable<u32>,
    queue: Ranked<(u64, Reverse<u32>)>,
    queued: u64,
    /// Last use of what was evicted.
    ghosts: Ghosts<Tick>,
}

impl Lirs {
    fn new(capacity: u64) -> Self {
        Self {
            capacity,
            low_capacity: capacity.saturating_sub((capacity / 100).max(1)),
            nodes: NodeTable::new(),
            low_blocks: 0,
            low: Ranked::new(),
            low_leaves: NodeTable::new(),
            queue: Ranked::new(),
            queued: 0,
            ghosts: Ghosts::new(),
        }
    }

    /// Whether a use at this time is younger than the last use of the oldest LIR leaf.
    fn is_recent(&mut self, used: Tick) -> bool {
        self.low
            .first_entry()
            .is_none_or(|((oldest, ..), _)| used > oldest)
    }

    fn join(&mut self, leaf: &Candidate) -> LirsState {
        let ghost = self.ghosts.take_returned(leaf.first_block);
        let fits = self.low_blocks + u64::from(leaf.blocks) <= self.low_capacity;
        let low = fits || ghost.is_some_and(|used| self.is_recent(used));
        self.low_blocks += if low { u64::from(leaf.blocks) } else { 0 };
        self.queue_up(leaf.id, low)
    }

    fn queue_up(&mut self, id: NodeId, low: bool) -> LirsState {
        self.queued += 1;
        let state = LirsState {
            low,
            queued: self.queued,
        };
        self.nodes.put(id, state);
        state
    }

    /// Makes the oldest LIR leaves HIR until the others fit.
    fn demote(&mut self) {
        while self.low_blocks > self.low_capacity
            && let Some(((_, depth, _), id)) = self.low.first_entry()
        {
            self.low.remove(id);
            let blocks = self.low_leaves.remove(id).unwrap_or_default();
            self.low_blocks = self.low_blocks.saturating_sub(u64::from(blocks));
            let state = self.queue_up(id, false);
            self.queue.put(id, (state.queued, depth));
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.low.remove(id);
        self.low_leaves.remove(id);
        self.queue.remove(id);
    }
}

impl EvictionPolicy for Lirs {
    fn offer(&mut self, leaf: &Candidate) {
        self.take_off(leaf.id);
        let state = match self.nodes.get(leaf.id) {
            Some(state) => *state,
            None => self.join(leaf),
        };
        if state.low {
            self.low.put(leaf.id, lru_order(leaf));
            self.low_leaves.put(leaf.id, leaf.blocks);
            self.demote();
        } else {
            let place = (state.queued, Reverse(leaf.depth_blocks));
            self.queue.put(leaf.id, place);
        }
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.queue
            .first()
            .or_else(|| self.low.first())
            .map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if self.nodes.get(evicted.id).is_some_and(|state| state.low) {
            self.low_blocks = self.low_blocks.saturating_sub(u64::from(evicted.blocks));
        }
        self.ghosts
            .remember(evicted.first_block, evicted.blocks, evicted.last_used);
        self.ghosts.trim(self.capacity);
        if whole {
            self.nodes.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        if self.nodes.remove(head).is_some_and(|state| state.low) {
            self.low_blocks = self.low_blocks.saturating_sub(u64::from(head_blocks));
        }
        if self.nodes.get(tail).is_some_and(|state| state.low) {
            self.low_blocks += u64::from(head_blocks);
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.ghosts.look_up(request);
        for node in nodes {
            if self.nodes.get(node.id).is_some_and(|state| state.low) {
                continue;
            }
            let low = self.is_recent(node.last_used);
            self.low_blocks += if low { u64::from(node.blocks) } else { 0 };
            self.queue_up(node.id, low);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn what_comes_back_sooner_than_the_oldest_favourite_takes_its_place() {
        // a and b are LIR, c and d pass; c comes back though a was not used since, so a is the next to pass.
        let paths = asks(&["a", "b", "c", "d", "c", "e"]);
        assert_eq!(victims("lirs", 3, &paths)[3..], ["c", "d", "a"]);
    }

    #[test]
    fn a_loop_keeps_its_favourites() {
        let paths = asks(&["a", "b", "c", "d", "a", "b", "c", "d", "a", "b"]);
        assert_eq!(
            victims("lirs", 3, &paths)[3..],
            ["c", "", "", "d", "c", "", ""]
        );
    }
}
