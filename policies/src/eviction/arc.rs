//! ARC: recency and frequency, balanced by what is admitted again.
//!
//! ```text
//!             evicted          evicted
//!    T1  used once  --->  B1   T2  used again  --->  B2        remembered, not resident
//!    a return from B1: T1 was too small, its target grows by max(1, |B2| / |B1|) per block
//!    a return from B2: T1 was too large, its target shrinks by max(1, |B1| / |B2|) per block
//! ```
//!
//! Sizes are in blocks, so a return moves the target by as many blocks as are missing. A use is one touch of a node, so a long
//! request does not look frequent. A node with children was used again by definition, so T1 holds leaves only.

use policy_api::{
    BlockId, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason,
};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::ghosts::Ghosts;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "arc",
    summary: "balances used-once against used-again by which of them is admitted again after an eviction",
    source: "Megiddo and Modha, ARC: a self-tuning, low overhead replacement cache, FAST 2003",
    idea: "Remember what was evicted from either half. Whichever half is missed more gets more of the cache.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "a loop is longer than the cache and its ghosts",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(NewcomersLast::new(ArcQueues::new(
            context.cache.capacity_blocks(),
        )))
    }),
};

struct ArcQueues {
    capacity: u64,
    /// Blocks that T1 should have.
    target: u64,
    /// Per node whether it came back from a ghost list, so that it is in T2 though it was used once.
    returned: NodeTable<bool>,
    t1: Ranked<LruOrder>,
    t2: Ranked<LruOrder>,
    /// Blocks of the leaves of T1.
    t1_leaves: NodeTable<u32>,
    t1_blocks: u64,
    b1: Ghosts<()>,
    b2: Ghosts<()>,
    /// The present request brought something back from B2.
    from_b2: bool,
}

impl ArcQueues {
    fn new(capacity: u64) -> Self {
        Self {
            capacity,
            target: 0,
            returned: NodeTable::new(),
            t1: Ranked::new(),
            t2: Ranked::new(),
            t1_leaves: NodeTable::new(),
            t1_blocks: 0,
            b1: Ghosts::new(),
            b2: Ghosts::new(),
            from_b2: false,
        }
    }

    /// Looks up what the request misses among the ghosts, and learns from it.
    fn learn(&mut self, request: &RequestView<'_>) {
        let (b1, b2) = (self.b1.blocks(), self.b2.blocks());
        let missing = request.path.len() as u64 - u64::from(request.held_blocks);
        let step = |other: u64, this: u64| missing * other.max(this) / this.max(1);
        self.from_b2 = false;
        if self.b1.look_up(request) {
            self.target = (self.target + step(b2, b1)).min(self.capacity);
        } else if self.b2.look_up(request) {
            self.target = self.target.saturating_sub(step(b1, b2));
            self.from_b2 = true;
        }
    }

    fn returns(&mut self, first_block: BlockId) -> bool {
        self.b1.take_returned(first_block).is_some() || self.b2.take_returned(first_block).is_some()
    }

    fn take_off(&mut self, id: NodeId) -> bool {
        self.t1.remove(id);
        self.t2.remove(id);
        let blocks = self.t1_leaves.remove(id);
        self.t1_blocks -= u64::from(blocks.unwrap_or(0));
        blocks.is_some()
    }
}

impl EvictionPolicy for ArcQueues {
    fn offer(&mut self, leaf: &Candidate) {
        self.take_off(leaf.id);
        let returned = match self.returned.get(leaf.id) {
            Some(returned) => *returned,
            None => self.returns(leaf.first_block),
        };
        self.returned.put(leaf.id, returned);
        if returned || leaf.uses > 1 {
            self.t2.put(leaf.id, lru_order(leaf));
        } else {
            self.t1.put(leaf.id, lru_order(leaf));
            self.t1_leaves.put(leaf.id, leaf.blocks);
            self.t1_blocks += u64::from(leaf.blocks);
        }
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let (t1, t2) = (self.t1.first(), self.t2.first());
        let over = self.t1_blocks > self.target;
        let full = self.from_b2 && self.t1_blocks == self.target;
        let first = if over || full { t1.or(t2) } else { t2.or(t1) };
        first.map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        let ghosts = if self.take_off(evicted.id) {
            &mut self.b1
        } else {
            &mut self.b2
        };
        ghosts.remember(evicted.first_block, evicted.blocks, ());
        // T1 and B1 together are at most the cache, and all four at most twice that; here the cache is full.
        self.b1.trim(self.capacity.saturating_sub(self.t1_blocks));
        self.b2.trim(self.capacity.saturating_sub(self.b1.blocks()));
        if whole {
            self.returned.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.returned.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.returned.remove(head);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.learn(request);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_return_from_b1_makes_t1_larger() {
        // c goes from T1 to B1 and returns: T1 may now have one block, so T2 gives a. LRU gives a at once.
        let paths = asks(&["a", "a", "b", "c", "d", "c"]);
        assert_eq!(victims("arc", 2, &paths)[3..], ["b", "c", "a"]);
        assert_eq!(victims("lru", 2, &paths)[3..], ["a", "b", ""]);
    }

    #[test]
    fn a_return_from_b2_makes_it_smaller_again() {
        // As above; then a returns from B2, T1 should be empty again and gives d, and e goes before c and a.
        let paths = asks(&["a", "a", "b", "c", "d", "c", "a", "e", "f"]);
        assert_eq!(
            victims("arc", 2, &paths)[3..],
            ["b", "c", "a", "d", "c", "e"]
        );
    }

    #[test]
    fn a_long_request_does_not_look_frequent() {
        // One request of three blocks is one touch: "bcd" is in T1 and goes before "a".
        let paths = asks(&["a", "a", "bcd", "e", "f", "g"]);
        assert_eq!(victims("arc", 4, &paths)[3..], ["d", "c", "b"]);
    }
}
