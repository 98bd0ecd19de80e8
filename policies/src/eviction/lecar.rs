//! LeCaR: LRU or LFU, whichever is regretted less.
//!
//! Two experts name a victim each; a draw by their weights says whose is evicted, to that expert's ghosts. When something is admitted
//! again from an expert's ghosts the other's weight grows by exp(0.45 * d^t), where t is how long ago it was evicted and
//! d = 0.005^(1/N).
//!
//! Time and N are in blocks: requests of long paths age ghosts faster. What is admitted again keeps its count of uses. What both
//! experts name is remembered by neither. The number that is drawn next is fixed when something is evicted, so that being
//! asked changes nothing.

use policy_api::{
    BlockId, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::entry::{BuildEviction, EvictionEntry, PolicyContext, Track};
use crate::parts::ghosts::Ghosts;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lecar",
    summary: "evicts by LRU or LFU, drawn by lot, weighted by how much either was regretted",
    source: "Vietri et al., Driving cache replacement with ML-based LeCaR, HotStorage 2018",
    idea: "Ask two experts and remember whose victims are asked for again: the other one is right more often.",
    cost: "O(log leaves) per offer, amortised; twice what lru takes",
    avoid_when: "neither recency nor frequency is right",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| Box::new(NewcomersLast::new(LeCar::new(context)))),
};

const LEARNING_RATE: f64 = 0.45;
/// What is left of a regret after as many blocks of traffic as the cache has.
const REGRET_AFTER_A_CACHE: f64 = 0.005;

#[derive(Clone, Copy)]
struct Regret {
    at_blocks: u64,
    uses: u32,
}

struct LeCar {
    capacity: u64,
    now_blocks: u64,
    weight_lru: f64,
    drawn: f64,
    generator: ChaCha8Rng,
    lru: Ranked<LruOrder>,
    lfu: Ranked<(u32, LruOrder)>,
    /// Uses of a node in its former lives.
    former_uses: NodeTable<u32>,
    gone_by_lru: Ghosts<Regret>,
    gone_by_lfu: Ghosts<Regret>,
}

impl LeCar {
    fn new(context: &PolicyContext) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(context.seed);
        Self {
            capacity: context.cache.capacity_blocks(),
            now_blocks: 0,
            weight_lru: 0.5,
            drawn: generator.random(),
            generator,
            lru: Ranked::new(),
            lfu: Ranked::new(),
            former_uses: NodeTable::new(),
            gone_by_lru: Ghosts::new(),
            gone_by_lfu: Ghosts::new(),
        }
    }

    /// Looks up what the request misses among the ghosts, and learns who should not have evicted it.
    fn learn(&mut self, request: &RequestView<'_>) {
        self.gone_by_lru.look_up(request);
        self.gone_by_lfu.look_up(request);
        let growth = |evicted: Option<&Regret>| {
            evicted.map_or(1.0, |evicted| {
                let caches =
                    (self.now_blocks - evicted.at_blocks) as f64 / self.capacity.max(1) as f64;
                (LEARNING_RATE * REGRET_AFTER_A_CACHE.powf(caches)).exp()
            })
        };
        let lru = self.weight_lru * growth(self.gone_by_lfu.returned());
        let lfu = (1.0 - self.weight_lru) * growth(self.gone_by_lru.returned());
        self.weight_lru = lru / (lru + lfu);
    }

    /// Uses that a newcomer had before it was evicted.
    fn uses_before(&mut self, first_block: BlockId) -> u32 {
        let by_lru = self.gone_by_lru.take_returned(first_block);
        let by_lfu = self.gone_by_lfu.take_returned(first_block);
        by_lru.or(by_lfu).map_or(0, |evicted| evicted.uses)
    }

    fn choices(&mut self) -> (Option<NodeId>, Option<NodeId>) {
        (self.lru.first(), self.lfu.first())
    }
}

impl EvictionPolicy for LeCar {
    fn offer(&mut self, leaf: &Candidate) {
        let former_uses = match self.former_uses.get(leaf.id) {
            Some(uses) => *uses,
            None => self.uses_before(leaf.first_block),
        };
        self.former_uses.put(leaf.id, former_uses);
        self.lru.put(leaf.id, lru_order(leaf));
        self.lfu
            .put(leaf.id, (former_uses + leaf.uses, lru_order(leaf)));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.lru.remove(id);
        self.lfu.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let (lru, lfu) = self.choices();
        let first = if self.drawn < self.weight_lru {
            lru
        } else {
            lfu
        };
        first.map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        let (lru, lfu) = self.choices();
        let memory = Regret {
            at_blocks: self.now_blocks,
            uses: evicted.uses + self.former_uses.get(evicted.id).copied().unwrap_or(0),
        };
        if lru != lfu {
            let ghosts = if lru == Some(evicted.id) {
                &mut self.gone_by_lru
            } else {
                &mut self.gone_by_lfu
            };
            ghosts.remember(evicted.first_block, evicted.blocks, memory);
            ghosts.trim(self.capacity);
        }
        self.withdraw(evicted.id, WithdrawReason::Used);
        self.drawn = self.generator.random();
        if whole {
            self.former_uses.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.former_uses.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.former_uses.remove(head);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.now_blocks += request.path.len() as u64;
        self.learn(request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::all;
    use crate::testing::{Trace, asks, context, view};
    use params::Params;
    use policy_api::Pair;

    fn victims(weight_lru: f64, paths: &[&str]) -> Vec<String> {
        let mut lecar = LeCar::new(&context(3, 0));
        lecar.weight_lru = weight_lru;
        let mut policy = Pair {
            eviction: Box::new(NewcomersLast::new(lecar)),
            admission: (all::ENTRY.build)(&context(3, 0), &Params::parse(&[], "").unwrap()),
        };
        Trace::new(&asks(paths)).victims(3, &mut policy)
    }

    #[test]
    fn the_weights_choose_the_expert() {
        let paths = ["a", "a", "b", "c", "d"];
        assert_eq!(victims(1.0, &paths)[4], "a", "LRU");
        assert_eq!(victims(0.0, &paths)[4], "b", "LFU");
    }

    #[test]
    fn what_comes_back_moves_weight_to_the_other_expert() {
        let mut lecar = LeCar::new(&context(4, 0));
        let evicted = Regret {
            at_blocks: 0,
            uses: 3,
        };
        lecar.gone_by_lru.remember(BlockId(7), 1, evicted);
        lecar.learn(&view(&[BlockId(7)]));
        let expected = 0.5 / (0.5 + 0.5 * LEARNING_RATE.exp());
        assert!((lecar.weight_lru - expected).abs() < 1e-12);
        assert_eq!(lecar.uses_before(BlockId(7)), 3, "it keeps its uses");
        lecar.learn(&view(&[BlockId(7)]));
        assert!((lecar.weight_lru - expected).abs() < 1e-12, "only once");
    }
}
