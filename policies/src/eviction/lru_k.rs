//! LRU-K with K = 2: by the last use but one.
//!
//! A leaf that was used only once is evicted before all others, the oldest first. The last use of what was evicted is remembered
//! for as many blocks as the cache has, so that a node which is admitted again has two uses. The paper's correlated
//! reference period is zero: one request is one use.

use policy_api::{Candidate, Ranked, RequestView, Tick};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::ghosts::Ghosts;
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::newcomers_last::NewcomersLast;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru-k",
    summary: "evicts the leaf whose use before the last is the oldest (K = 2)",
    source: "O'Neil, O'Neil and Weikum, The LRU-K page replacement algorithm, SIGMOD 1993",
    idea: "Two uses tell how often a node is used, one tells only when. What was used once is evicted first.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "reuse is soon and only once",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        let rule = LruK {
            history_capacity: context.cache.capacity_blocks(),
            history: Ghosts::new(),
        };
        Box::new(NewcomersLast::new(Keyed::new(rule)))
    }),
};

/// The use before the last; `None` sorts before all uses.
type Before = Option<Tick>;

struct LruK {
    history_capacity: u64,
    /// Last use of what was evicted.
    history: Ghosts<Tick>,
}

impl Rule for LruK {
    type Order = Ranked<(Before, LruOrder)>;
    type State = Before;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (Before, LruOrder) {
        let history = &mut self.history;
        let before = *nodes
            .states
            .entry(leaf.id, || history.take_returned(leaf.first_block));
        (before, lru_order(leaf))
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.history.look_up(request);
        for node in path {
            nodes.states.put(node.id, Some(node.last_used));
        }
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        self.history
            .remember(evicted.first_block, evicted.blocks, evicted.last_used);
        self.history.trim(self.history_capacity);
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
