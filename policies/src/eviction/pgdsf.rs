//! PGDSF: GreedyDual with the measured cost of a prefix tree's nodes.
//!
//! Source: Jin et al., "RAGCache: efficient knowledge caching for retrieval-augmented generation", 2024. A leaf is worth
//! clock + frequency * mean over the requests that computed it of T(cached, new) / new: the seconds a token really cost in
//! the requests that missed it, which depend on how much of them was cached. The leaf worth least goes and sets the clock.
//!
//! A node is computed when it is admitted; one that comes back adds to what is remembered of it, for as many blocks as the
//! cache has. `frequency` is the uses since it became resident.
//!
//! Cost: as `lru`. Do not use it where uses in the past say little about uses to come.

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Victim, WithdrawReason};

use crate::entry::{EvictionEntry, Track};
use crate::parts::density::without_noise;
use crate::parts::ghosts::Ghosts;
use crate::parts::greedy_clock::GreedyClock;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "pgdsf",
    summary: "clock + uses * seconds per token of the requests that computed it, the smallest goes",
    source: "Jin et al., RAGCache, 2024 (PGDSF)",
    idea: "GreedyDual with the cost as it was measured: a token is dear in a request of which little was cached.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "uses in the past say little about uses to come",
    params: &[],
    track: Track::Online,
    build: |context, _| {
        Box::new(Pgdsf::new(
            context.cache.capacity_blocks(),
            context.cache.block_tokens,
        ))
    },
};

/// Seconds per new token of the requests that computed a node.
#[derive(Clone, Copy, Default)]
struct Computed {
    sum: f64,
    requests: u32,
}

struct Pgdsf {
    block_tokens: u32,
    memory_blocks: u64,
    clock: GreedyClock,
    nodes: NodeTable<Computed>,
    ghosts: Ghosts<Computed>,
    present_seconds_per_token: f64,
}

impl Pgdsf {
    fn new(capacity_blocks: u64, block_tokens: u32) -> Self {
        Self {
            block_tokens,
            memory_blocks: capacity_blocks,
            clock: GreedyClock::new(),
            nodes: NodeTable::new(),
            ghosts: Ghosts::new(),
            present_seconds_per_token: 0.0,
        }
    }
}

impl EvictionPolicy for Pgdsf {
    fn offer(&mut self, leaf: &Candidate) {
        let (ghosts, now) = (&mut self.ghosts, self.present_seconds_per_token);
        let computed = self.nodes.entry(leaf.id, || {
            let before = ghosts.recall(leaf.first_block).unwrap_or_default();
            Computed {
                sum: before.sum + now,
                requests: before.requests + 1,
            }
        });
        let mean = computed.sum / f64::from(computed.requests);
        self.clock.offer(leaf, f64::from(leaf.uses) * mean);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.clock.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.clock.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.clock.evicted(evicted.id);
        if let Some(&computed) = self.nodes.get(evicted.id) {
            self.ghosts
                .remember(evicted.first_block, evicted.blocks, computed);
            self.ghosts.trim(self.memory_blocks);
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
        self.clock.observe(request.now);
        let hit_tokens = request.hit_blocks * self.block_tokens;
        let new_tokens = request.prompt_tokens.saturating_sub(hit_tokens).max(1);
        self.present_seconds_per_token =
            without_noise(request.prefill.seconds / f64::from(new_tokens));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::all;
    use crate::testing::{Trace, asks, context, victims};
    use params::Params;
    use policy_api::{Pair, Work};

    #[test]
    fn at_a_flat_cost_it_is_gdsf() {
        let paths = asks(&["a", "a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(victims("pgdsf", 3, &paths), victims("gdsf", 3, &paths));
    }

    /// Makes the prefill of some requests dear.
    struct Dear {
        inner: Pgdsf,
        requests: &'static [u32],
    }

    impl EvictionPolicy for Dear {
        fn offer(&mut self, leaf: &Candidate) {
            self.inner.offer(leaf);
        }
        fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
            self.inner.withdraw(id, why);
        }
        fn victim(&mut self) -> Option<Victim> {
            self.inner.victim()
        }
        fn evicted(&mut self, evicted: &Candidate, whole: bool) {
            self.inner.evicted(evicted, whole);
        }
        fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
            let seconds = if self.requests.contains(&request.index.0) {
                90.0
            } else {
                request.prefill.seconds
            };
            let prefill = Work {
                seconds,
                ..request.prefill
            };
            self.inner.observe(
                &RequestView {
                    prefill,
                    ..*request
                },
                nodes,
            );
        }
    }

    #[test]
    fn what_was_dear_to_compute_stays() {
        let mut policy = Pair {
            eviction: Box::new(Dear {
                inner: Pgdsf::new(2, 1),
                requests: &[0],
            }),
            admission: (all::ENTRY.build)(&context(2, 0), &Params::parse(&[], "").unwrap()),
        };
        let trace = Trace::new(&asks(&["a", "b", "c", "d", "b"]));
        assert_eq!(trace.victims(2, &mut policy)[2..], ["b", "c", "d"]);
    }
}
