//! GreedyDual-Size with Frequency.
//!
//! The clock counts as it stood at a leaf's last use, and cost is the seconds of its recompute, in seconds per GB. A newcomer is
//! worth more than the clock, and the clock rises with every refusal, so no newcomer is shut out for good.

use policy_api::{Candidate, RequestView};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::density::seconds_per_gb;
use crate::parts::greedy_clock::{GreedyClock, GreedyKey, GreedyOrder};
use crate::parts::keyed::{Keyed, Nodes, Rule};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "gdsf",
    summary: "evicts the smallest clock + uses * recompute seconds / bytes, to which it sets the clock",
    source: "Cherkasova, Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy, HP Labs 1998",
    idea: "Uses times cost per byte say what a node is worth; the clock lets what is not used grow old.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "uses in the past say little about uses to come",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(Keyed::new(Gdsf(GreedyClock::new())))),
};

struct Gdsf(GreedyClock);

impl Rule for Gdsf {
    type Order = GreedyOrder;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> GreedyKey {
        let value = f64::from(leaf.uses) * seconds_per_gb(leaf);
        self.0.worth(leaf, value)
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], _: &mut Nodes<Self>) {
        self.0.observe(request.now);
    }

    fn evicted(&mut self, evicted: &Candidate, nodes: &mut Nodes<Self>) {
        self.0.evicted(evicted.id, &mut nodes.order);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn the_clock_makes_old_favourites_go() {
        // With one second a byte the worth of a is 2; that of the others is 1 at first, and 2 once b set the clock to 1.
        // Of equals the older goes: c and d at 1, then a at 2.
        let paths = asks(&["a", "a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(victims("gdsf", 3, &paths)[4..], ["b", "c", "d", "a"]);
        assert_eq!(victims("lfu", 3, &paths)[4..], ["b", "c", "d", "e"]);
    }
}
