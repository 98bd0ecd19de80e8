//! LRU-K, K = 2: by the last use but one.
//!
//! Source: O'Neil, O'Neil and Weikum, "The LRU-K page replacement algorithm", SIGMOD 1993. The leaf whose use before the
//! last lies furthest back goes; one that was used only once goes before all of them, the oldest first. The last use of
//! what was evicted is remembered for as many blocks as the cache has, so that a run which comes back has two uses.
//! The paper's correlated reference period is zero: one request is one use.
//!
//! Cost: as `lru`, and one visit to every run of the path. Do not use it where reuse comes soon and only once.

use policy_api::{Candidate, EvictionPolicy, Ranked, RequestView, RunId, Victim, Why};

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::ghosts::Ghosts;
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::run_table::RunTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lru-k",
    summary: "the leaf whose use before the last is the oldest goes (K = 2)",
    source: "O'Neil, O'Neil and Weikum, The LRU-K page replacement algorithm, SIGMOD 1993",
    idea: "Two uses tell how often a run is used, one tells only when. What was used once goes first.",
    cost: "O(log leaves) per offer, amortised; one visit to every run of the path",
    avoid_when: "reuse comes soon and only once",
    params: &[],
    track: Track::Online,
    build: |setup, _| Box::new(NewcomersLast::new(LruK::new(setup.capacity_blocks))),
};

/// The use before the last; `None` sorts before all uses.
type Before = Option<u32>;

struct LruK {
    history_capacity: u64,
    before: RunTable<Before>,
    ranked: Ranked<(Before, LruOrder)>,
    /// Last use of what went.
    history: Ghosts<u32>,
}

impl LruK {
    fn new(capacity_blocks: u64) -> Self {
        Self {
            history_capacity: capacity_blocks,
            before: RunTable::new(),
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

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, whole: bool) {
        self.ranked.remove(gone.id);
        self.history
            .remember(gone.first_block, gone.blocks, gone.last_used);
        self.history.trim(self.history_capacity);
        if whole {
            self.before.remove(gone.id);
        }
    }

    fn split(&mut self, head: RunId, tail: RunId) {
        self.before.split(head, tail);
    }

    fn merge(&mut self, head: RunId, _: RunId, _: u32) {
        self.before.remove(head);
    }

    fn wants_runs(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.history.look_up(request);
        for run in runs {
            self.before.put(run.id, Some(run.last_used));
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
