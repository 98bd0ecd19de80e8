//! A leaf drawn by lot.
//!
//! The number that is drawn next is fixed when something is evicted, so that being asked for a victim changes nothing.

use policy_api::{Candidate, EvictionPolicy, NodeId, Victim, WithdrawReason};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::indexed_set::IndexedSet;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "random",
    summary: "evicts a leaf drawn by lot (a control)",
    source: "control",
    idea: "Every leaf node is as likely as any other, by a seeded generator: it shows what a rule is worth.",
    cost: "O(1)",
    avoid_when: "anything is known of the traffic",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| Box::new(Random::new(context.seed))),
};

struct Random {
    leaves: IndexedSet,
    generator: ChaCha8Rng,
    drawn: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        Self {
            leaves: IndexedSet::default(),
            drawn: generator.random(),
            generator,
        }
    }
}

impl EvictionPolicy for Random {
    fn offer(&mut self, leaf: &Candidate) {
        self.leaves.insert(leaf.id);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.pick(self.drawn).map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.leaves.remove(evicted.id);
        self.drawn = self.generator.random();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::testing::{Trace, asks, pair_seeded};

    #[test]
    fn every_leaf_goes_under_some_seed_and_the_same_under_the_same() {
        let trace = Trace::new(&asks(&["a", "b", "c", "d"]));
        let goes = |seed| trace.victims(3, &mut pair_seeded("random", 3, seed))[3].clone();
        let all: BTreeSet<_> = (0..40).map(goes).collect();
        assert_eq!(all, BTreeSet::from(["a", "b", "c", "d"].map(str::to_owned)));
        assert!((0..40).all(|seed| goes(seed) == goes(seed)));
    }
}
