//! Least recently finished.
//!
//! A request holds its blocks while it runs and gives them back when it has finished, its tail first. Where requests are replayed
//! one after another a request finishes before the next one arrives, so this is `lru`; where running requests pin their
//! paths, it is not. A node's time is the latest of its last use and of the moment when its pin, or that of anything evicted
//! from below it, was given back.

use policy_api::{Candidate, NodeId, Ranked, RequestView, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::per_request::PerEvent;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "vllm",
    summary: "evicts the leaf given back longest ago, tail first",
    source: "vLLM block pool (free queue)",
    idea: "LRU by the time a request finished instead of when it arrived. Equal to lru where requests are replayed one after \
           another.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "reuse is regular but sparse, or singletons flood the cache",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(Keyed::new(Vllm::default()))),
};

#[derive(Default)]
struct Vllm {
    /// Counts arrivals and pins given back.
    clock: u64,
    arrived: PerEvent<u64>,
}

#[derive(Clone, Copy, Default)]
struct Release {
    pinned: bool,
    released: u64,
}

impl Rule for Vllm {
    type Order = Ranked<(u64, LruOrder)>;
    type State = Release;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (u64, LruOrder) {
        let state = nodes.states.entry(leaf.id, Release::default);
        if std::mem::take(&mut state.pinned) {
            self.clock += 1;
            state.released = self.clock;
        }
        let time = state.released.max(self.arrived.at(leaf.last_used));
        (time, lru_order(leaf))
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], _: &mut Nodes<Self>) {
        self.clock += 1;
        self.arrived.note(request.now, self.clock);
    }

    fn withdrawn(&mut self, id: NodeId, why: WithdrawReason, nodes: &mut Nodes<Self>) {
        if why == WithdrawReason::Pinned {
            nodes.states.entry(id, Release::default).pinned = true;
        }
    }

    fn evicted(&mut self, evicted: &Candidate, nodes: &mut Nodes<Self>) {
        let state = nodes.states.get(evicted.id);
        let released = state.map_or(0, |state| state.released);
        if let Some(parent) = evicted.parent {
            let above = nodes.states.entry(parent, Release::default);
            above.released = above.released.max(released);
        }
    }
}

#[cfg(test)]
mod tests {
    use cache::EvictUnit;
    use policy_api::BlockId;

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
        assert_eq!(goes("lru"), [0, 2, 3].map(BlockId), "the tail of ab went");
        assert_eq!(goes("vllm"), [0, 1, 3].map(BlockId), "c finished before ab");
    }
}
