//! GreedyDual-Size with Frequency.
//!
//! Source: Cherkasova, "Improving WWW proxies performance with Greedy-Dual-Size-Frequency caching policy", HP Labs 1998.
//! A leaf is worth clock + uses * cost / bytes, with the clock as it stood at its last use and the seconds of its
//! recompute as the cost, in seconds per GB. The leaf worth least goes, and the clock is raised to its worth.
//!
//! Since a newcomer is worth more than the clock, and the clock rises with every refusal, no newcomer is shut out for good.
//!
//! Cost: as `lru`. Do not use it where uses in the past say little about uses to come.

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Victim, WithdrawReason};

use crate::entry::{EvictionEntry, Track};
use crate::parts::density::seconds_per_gb;
use crate::parts::greedy_clock::GreedyClock;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "gdsf",
    summary: "clock + uses * recompute seconds / bytes, the smallest goes and sets the clock",
    source: "Cherkasova, Greedy-Dual-Size-Frequency, HP Labs 1998",
    idea: "Uses times cost per byte say what a node is worth; the clock lets what is not used grow old.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "uses in the past say little about uses to come",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Gdsf(GreedyClock::new())),
};

struct Gdsf(GreedyClock);

impl EvictionPolicy for Gdsf {
    fn offer(&mut self, leaf: &Candidate) {
        self.0
            .offer(leaf, f64::from(leaf.uses) * seconds_per_gb(leaf));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.0.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.0.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.0.evicted(evicted.id);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.0.observe(request.now);
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
