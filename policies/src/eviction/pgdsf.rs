//! PGDSF: GreedyDual with the measured cost of a prefix tree's nodes.
//!
//! A leaf is worth clock + uses * mean over the requests that computed it of T(cached, new) / new, the seconds that a token
//! really cost. A node is computed when it is admitted. One that is admitted again adds to what is remembered of it, for as many
//! evicted blocks as the cache has.

use policy_api::{Candidate, RequestView};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::density::without_noise;
use crate::parts::ghosts::Ghosts;
use crate::parts::greedy_clock::{GreedyClock, GreedyKey, GreedyOrder};
use crate::parts::keyed::{Keyed, Nodes, Rule};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "pgdsf",
    summary: "evicts the smallest clock + uses * seconds per token of the requests that computed it",
    source: "Jin et al., RAGCache: efficient knowledge caching for retrieval-augmented generation, 2024 (PGDSF)",
    idea: "GreedyDual with the cost as it was measured: a token is dear in a request of which little was cached.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "uses in the past say little about uses to come",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(Keyed::new(Pgdsf::new(
            context.cache.capacity_blocks(),
            context.cache.block_tokens,
        )))
    }),
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
    ghosts: Ghosts<Computed>,
    present_seconds_per_token: f64,
}

impl Pgdsf {
    fn new(capacity_blocks: u64, block_tokens: u32) -> Self {
        Self {
            block_tokens,
            memory_blocks: capacity_blocks,
            clock: GreedyClock::new(),
            ghosts: Ghosts::new(),
            present_seconds_per_token: 0.0,
        }
    }
}

impl Rule for Pgdsf {
    type Order = GreedyOrder;
    type State = Computed;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> GreedyKey {
        let (ghosts, now) = (&mut self.ghosts, self.present_seconds_per_token);
        let computed = nodes.states.entry(leaf.id, || {
            let before = ghosts.recall(leaf.first_block).unwrap_or_default();
            Computed {
                sum: before.sum + now,
                requests: before.requests + 1,
            }
        });
        let mean = computed.sum / f64::from(computed.requests);
        self.clock.worth(leaf, f64::from(leaf.uses) * mean)
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], _: &mut Nodes<Self>) {
        self.clock.observe(request.now);
        let hit_tokens = request.hit_blocks * self.block_tokens;
        let new_tokens = request.prompt_tokens.saturating_sub(hit_tokens).max(1);
        self.present_seconds_per_token =
            without_noise(request.prefill.seconds / f64::from(new_tokens));
    }

    fn evicted(&mut self, evicted: &Candidate, nodes: &mut Nodes<Self>) {
        self.clock.evicted(evicted.id, &mut nodes.order);
        if let Some(&computed) = nodes.states.get(evicted.id) {
            self.ghosts
                .remember(evicted.first_block, evicted.blocks, computed);
            self.ghosts.trim(self.memory_blocks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::all;
    use crate::testing::{Trace, asks, context, victims};
    use params::Params;
    use policy_api::{EvictionPolicy, NodeId, Pair, Victim, WithdrawReason, Work};

    #[test]
    fn at_a_flat_cost_it_is_gdsf() {
        let paths = asks(&["a", "a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(victims("pgdsf", 3, &paths), victims("gdsf", 3, &paths));
    }

    /// Makes the prefill of some requests dear.
    struct Dear {
        inner: Keyed<Pgdsf>,
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
                inner: Keyed::new(Pgdsf::new(2, 1)),
                requests: &[0],
            }),
            admission: (all::ENTRY.build)(&context(2, 0), &Params::parse(&[], "").unwrap()),
        };
        let trace = Trace::new(&asks(&["a", "b", "c", "d", "b"]));
        assert_eq!(trace.victims(2, &mut policy)[2..], ["b", "c", "d"]);
    }
}
