//! Relaxed Belady, by a model of the next use.
//!
//! A linear model, trained online, predicts from facts of the past how long it will be until a node is used. Of 64 leaves drawn by lot
//! the one with the furthest predicted use is evicted; with fewer leaves, of all.
//!
//! Every use of a node teaches: at a moment drawn from the gap that it ended, what would have been right? So does what was
//! evicted: if it is admitted again, its gap; if not within as many evicted blocks as the cache has (the memory window), twice the
//! time waited, since beyond the window all uses are equally far. Time to the next use is learned as a logarithm.

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Victim, WithdrawReason};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::entry::{BuildEviction, EvictionEntry, PolicyContext, Track};
use crate::parts::ghosts::Ghosts;
use crate::parts::indexed_set::IndexedSet;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;
use crate::parts::per_request::PerEvent;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "learned",
    summary: "evicts, of 64 leaves drawn by lot, the one whose next use a linear model predicts furthest",
    source: "Song et al., Learning relaxed Belady for content distribution network caching (LRB), NSDI 2020 (features ours)",
    idea: "Learn from every gap that ends, and from those that do not, when nodes like this one are used next.",
    cost: "O(1): 64 predictions of 12 products per eviction, one step of a regression per node of the path",
    avoid_when: "a rule is known to be right, or traffic is too little to learn from",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| Box::new(Lrb::new(context))),
};

const SAMPLE: usize = 64;
const FEATURES: usize = 12;
const LEARNING_RATE: f64 = 0.02;

type LeafFeatures = [f64; FEATURES];
/// The only feature that changes while a leaf is evictable.
const AGE: usize = 1;

/// What decides about an evictable leaf: 64 are looked at for every eviction.
#[derive(Clone)]
struct KnownLeaf {
    /// Its features, but for the age.
    features: LeafFeatures,
    last_used_us: i64,
    order: LruOrder,
}

struct Lrb {
    now_us: i64,
    arrivals_us: PerEvent<i64>,
    evictable: IndexedSet,
    leaves: NodeTable<KnownLeaf>,
    weights: LeafFeatures,
    generator: ChaCha8Rng,
    drawn: u64,
    /// The victim, as long as nothing has changed since it was asked for.
    chosen: Option<NodeId>,
    window: Ghosts<Candidate>,
    window_blocks: u64,
}

impl Lrb {
    fn new(context: &PolicyContext) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(context.seed);
        let mut weights = [0.0; FEATURES];
        // As long as nothing is learned the next use is as far as the last: LRU.
        weights[AGE] = 1.0;
        Self {
            now_us: 0,
            arrivals_us: PerEvent::new(),
            evictable: IndexedSet::default(),
            leaves: NodeTable::new(),
            weights,
            drawn: generator.random(),
            generator,
            chosen: None,
            window: Ghosts::new(),
            window_blocks: context.cache.capacity_blocks(),
        }
    }

    /// What is known of a node at some age, each on a scale of about one.
    fn features(&self, node: &Candidate, age_us: f64) -> LeafFeatures {
        let log = |value: f64| (1.0 + value).ln() / 8.0;
        let life_us = us_between(
            self.arrivals_us.at(node.created),
            self.arrivals_us.at(node.last_used),
        );
        let gaps = f64::from(node.uses.saturating_sub(1));
        let mut kind = [0.0; 4];
        kind[usize::from(node.last_kind) % 4] = 1.0;
        [
            1.0,
            log_time(age_us),
            log_time(if gaps > 0.0 { life_us / gaps } else { 0.0 }),
            log(gaps),
            log(f64::from(node.depth_blocks)),
            log(f64::from(node.blocks)),
            log(f64::from(node.children_seen)),
            log(f64::from(node.last_step)),
            kind[0],
            kind[1],
            kind[2],
            kind[3],
        ]
    }

    fn predict(&self, features: &LeafFeatures) -> f64 {
        self.weights.iter().zip(features).map(|(w, x)| w * x).sum()
    }

    fn age_us(&self, node: &Candidate) -> f64 {
        us_between(self.arrivals_us.at(node.last_used), self.now_us)
    }

    /// A gap ended now, or is taken to end after as long again.
    fn learn(&mut self, node: &Candidate, used: bool) {
        let waited_us = self.age_us(node);
        let moment_us = waited_us * self.generator.random::<f64>();
        let end_us = if used { waited_us } else { 2.0 * waited_us };
        let features = self.features(node, moment_us);
        let error = log_time(end_us - moment_us) - self.predict(&features);
        let length: f64 = features.iter().map(|x| x * x).sum();
        for (weight, value) in self.weights.iter_mut().zip(features) {
            *weight += LEARNING_RATE * error * value / length;
        }
    }

    fn furthest(&self) -> Option<NodeId> {
        let count = self.evictable.len().min(SAMPLE);
        let mut generator = ChaCha8Rng::seed_from_u64(self.drawn);
        let sample = (0..count).filter_map(|nth| {
            if self.evictable.len() <= SAMPLE {
                self.evictable.nth(nth)
            } else {
                self.evictable.pick(generator.random())
            }
        });
        let distance = |id: &NodeId| {
            let leaf = self.leaves.get(*id)?;
            let mut features = leaf.features;
            features[AGE] = log_time(us_between(leaf.last_used_us, self.now_us));
            Some(self.predict(&features))
        };
        sample
            .map(|id| (distance(&id).unwrap_or(f64::MIN), id))
            .max_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| self.older(*x, *y)))
            .map(|(_, id)| id)
    }

    /// Ties: the older last use, then the deeper.
    fn older(&self, left: NodeId, right: NodeId) -> std::cmp::Ordering {
        let order = |id| self.leaves.get(id).map(|leaf| leaf.order);
        order(right).cmp(&order(left))
    }

    fn take_off(&mut self, id: NodeId) {
        self.chosen = None;
        self.evictable.remove(id);
        self.leaves.remove(id);
    }
}

fn us_between(from_us: i64, to_us: i64) -> f64 {
    to_us.saturating_sub(from_us) as f64
}

/// Log of a time in microseconds, about 1 at an hour.
fn log_time(us: f64) -> f64 {
    (1.0 + us.max(0.0) / 1e3).ln() / 15.0
}

impl EvictionPolicy for Lrb {
    fn offer(&mut self, leaf: &Candidate) {
        self.chosen = None;
        if let Some(before) = self.window.recall(leaf.first_block) {
            self.learn(&before, true);
        }
        self.evictable.insert(leaf.id);
        let known = KnownLeaf {
            features: self.features(leaf, 0.0),
            last_used_us: self.arrivals_us.at(leaf.last_used),
            order: lru_order(leaf),
        };
        self.leaves.put(leaf.id, known);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        if self.chosen.is_none() {
            self.chosen = self.furthest();
        }
        self.chosen.map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.take_off(evicted.id);
        self.window
            .remember(evicted.first_block, evicted.blocks, *evicted);
        while self.window.blocks() > self.window_blocks
            && let Some(lost) = self.window.forget_oldest()
        {
            self.learn(&lost, false);
        }
        self.drawn = self.generator.random();
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.chosen = None;
        self.now_us = request.arrival_us;
        self.arrivals_us.note(request.now, request.arrival_us);
        for node in nodes {
            self.learn(node, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, ask, asks, context, victims};

    #[test]
    fn as_long_as_nothing_is_known_it_is_lru() {
        let paths = asks(&["a", "b", "c", "d", "e"]);
        assert_eq!(victims("learned", 3, &paths), victims("lru", 3, &paths));
    }

    #[test]
    fn a_kind_that_does_not_come_back_goes_first() {
        let letter = |round: u32| char::from_u32(0x4e00 + round).unwrap().to_string();
        let mut paths: Vec<Ask> = Vec::new();
        for round in 0..2_000 {
            let at_s = f64::from(round) * 10.0;
            paths.push(ask("a").kind(1).at_seconds(at_s));
            paths.push(ask(letter(round)).kind(2).at_seconds(at_s + 5.0));
        }
        // Now "a" is the older, but of the kind that comes back.
        paths.push(ask("z").kind(2).at_seconds(20_000.0));
        let last = victims("learned", 2, &paths).pop();
        assert_eq!(last, Some(letter(1_999)));
        assert_eq!(victims("lru", 2, &paths).pop().as_deref(), Some("a"));
    }

    #[test]
    fn a_step_of_the_regression_goes_towards_the_gap() {
        let mut policy = Lrb::new(&context(9, 0));
        policy.weights = [0.0; FEATURES];
        policy.now_us = 3_600_000_000;
        let node = crate::testing::leaf(1);
        for _ in 0..2_000 {
            policy.learn(&node, true);
        }
        let half_us = 1.8e9;
        let error = policy.predict(&policy.features(&node, half_us)) - log_time(half_us);
        assert!(error.abs() < 0.1, "{error}");
    }
}
