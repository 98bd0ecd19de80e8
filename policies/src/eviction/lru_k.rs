//! LRU-K, K = 2: by the last use but one.
//!
//! Source: O'Neil, O'Neil and Weikum, "The LRU-K page replacement algorithm", SIGMOD 1993. The leaf whose use before the
//! last lies furthest back goes; one that was used only once goes before all of them, the oldest first. The last use of
//! what was evicted is remembered for as many blocks as the cache has, so that a node which comes back has two uses.
//! The paper's correlated reference period is zero: one request is one use.
//!
//! Cost: as `lru`, and one visit to every node of the path. Do not use it where reuse comes soon and only once.

use policy_api::{
    Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim, WithdrawReason,
};

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::ghosts::Ghosts;
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru-k",
    summary: "the leaf whose use before the last is the oldest goes (K = 2)",
    source: "O'Neil, O'Neil and Weikum, The LRU-K page replacement algorithm, SIGMOD 1993",
    idea: "Two uses tell how often a node is used, one tells only when. What was used once goes first.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "reuse comes soon and only once",
    params: &[],
    track: Track::Online,
    build: |context, _| {
        Box::new(NewcomersLast::new(LruK::new(
            context.cache.capacity_blocks(),
        )))
    },
};

/// The use before the last; `None` sorts before all uses.
type Before = Option<Tick>;

struct LruK {
    history_capacity: u64,
    before: NodeTable<Before>,
    ranked: Ranked<(Before, LruOrder)>,
    /// Last use of what went.
    history: Ghosts<Tick>,
}

impl LruK {
    fn new(capacity_blocks: u64) -> Self {
        Self {
            history_capacity: capacity_blocks,
            before: NodeTable::new(),
            ranked: Ranked::new(),
            history: Ghosts::new(),
        }
    }
}

impl EvictionPolicy for LruK {
    fn offer(&mut self, leaf: &Candidate) {
        let history = &mut self.history;
        let before = *self
            .before
            .entry(leaf.id, || history.take_returned(leaf.first_block));
        self.ranked.put(leaf.id, (before, lru_order(leaf)));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.ranked.remove(evicted.id);
        self.history
            .remember(evicted.first_block, evicted.blocks, evicted.last_used);
        self.history.trim(self.history_capacity);
        if whole {
            self.before.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.before.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.before.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.history.look_up(request);
        for node in nodes {
            self.before.put(node.id, Some(node.last_used));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn the_use_before_the_last_decides() {
        // a was used at 0 and 5, b at 1 and 2: LRU would evict b.
        let paths = asks(&["a", "b", "b", "c", "c", "a", "d"]);
        assert_eq!(victims("lru-k", 3, &paths)[6], "a");
        assert_eq!(victims("lru", 3, &paths)[6], "b");
    }

    #[test]
    fn one_use_goes_before_two() {
        let paths = asks(&["a", "a", "b", "c", "d", "e"]);
        assert_eq!(victims("lru-k", 3, &paths)[4..], ["b", "c"]);
    }

    #[test]
    fn what_comes_back_has_two_uses() {
        // "a" comes back with its use at 0: after b, c, d, which have one use, it is the one to stay.
        let paths = asks(&["a", "b", "c", "a", "d", "e", "f"]);
        assert_eq!(victims("lru-k", 2, &paths)[2..], ["a", "b", "c", "d", "e"]);
    }
}
