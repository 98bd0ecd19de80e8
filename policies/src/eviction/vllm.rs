//! Least recently finished.
//!
//! Source: vLLM's block pool. A request holds its blocks while it nodes and gives them back when it has finished, its tail
//! first; what was given back longest ago goes. In atomic replay a request finishes before the next arrives, so this is
//! `lru`; in timed replay, where running requests pin their paths, it is not.
//!
//! A node's time is the latest of its last use and of the moment its pin, or that of anything evicted from below it, was
//! given back. Cost: as `lru`. Do not use it where `lru` should not be used.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;
use crate::parts::per_request::PerEvent;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "vllm",
    summary: "the leaf given back longest ago goes, tail first",
    source: "vLLM block pool (free queue)",
    idea: "LRU by the time a request finished instead of when it came. Equal to lru in atomic replay.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "reuse is regular but sparse, or singletons flood the cache",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Vllm::new()),
};

struct Vllm {
    ranked: Ranked<(u64, LruOrder)>,
    /// Counts arrivals and pins given back.
    clock: u64,
    arrived: PerEvent<u64>,
    nodes: NodeTable<Release>,
}

#[derive(Clone, Copy, Default)]
struct Release {
    pinned: bool,
    released: u64,
}

impl Vllm {
    fn new() -> Self {
        Self {
            ranked: Ranked::new(),
            clock: 0,
            arrived: PerEvent::new(),
            nodes: NodeTable::new(),
        }
    }
}

impl EvictionPolicy for Vllm {
    fn offer(&mut self, leaf: &Candidate) {
        let state = self.nodes.entry(leaf.id, Release::default);
        if std::mem::take(&mut state.pinned) {
            self.clock += 1;
            state.released = self.clock;
        }
        let time = state.released.max(self.arrived.at(leaf.last_used));
        self.ranked.put(leaf.id, (time, lru_order(leaf)));
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.ranked.remove(id);
        if why == WithdrawReason::Pinned {
            self.nodes.entry(id, Release::default).pinned = true;
        }
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.ranked.remove(evicted.id);
        let released = self.nodes.get(evicted.id).map_or(0, |state| state.released);
        if let Some(parent) = evicted.parent {
            let above = self.nodes.entry(parent, Release::default);
            above.released = above.released.max(released);
        }
        if whole {
            self.nodes.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.nodes.remove(head);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.clock += 1;
        self.arrived.note(request.now, self.clock);
    }
}

#[cfg(test)]
mod tests {
    use cache::EvictUnit;

    use crate::testing::{Trace, asks, assert_is_lru, pair_seeded};

    #[test]
    fn in_atomic_replay_it_is_lru() {
        assert_is_lru("vllm");
    }

    #[test]
    fn what_is_given_back_last_stays_longest() {
        let trace = Trace::new(&asks(&["ab", "c", "d"]));
        let goes = |name| {
            let mut policy = pair_seeded(name, 3, 0);
            let mut cache = trace.cache(3, EvictUnit::Block);
            trace.serve(0, &mut cache, &mut policy);
            let running = cache.pin(trace.path(0), &mut policy);
            trace.serve(1, &mut cache, &mut policy);
            cache.unpin(running, &mut policy);
            trace.serve(2, &mut cache, &mut policy);
            cache.resident_blocks()
        };
        assert_eq!(goes("lru"), [0, 2, 3], "the tail of ab went");
        assert_eq!(goes("vllm"), [0, 1, 3], "c finished before ab");
    }
}
