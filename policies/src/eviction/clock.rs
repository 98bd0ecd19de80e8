//! CLOCK: first in, first out, with a second chance.
//!
//! A node that has children keeps its place and its mark, and is looked at when it becomes a leaf: where the hand would evict an
//! inner node, the leaves below it are evicted first.

use policy_api::{Candidate, EvictionPolicy, NodeId, Victim, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::chances::Chances;
use crate::parts::newcomers_last::NewcomersLast;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "clock",
    summary: "evicts first in, first out, but passes a leaf once more that was used since it was last passed",
    source: "Corbato, A paging experiment with the Multics system, 1968",
    idea: "One mark a node, set by a use and cleared by the hand that passes it: LRU in outline, without an order.",
    cost: "O(log leaves) per offer, amortised: each pass is paid for by the use that made it",
    avoid_when: "recency must be exact, or frequency matters",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(NewcomersLast::new(Clock(Chances::new(1))))),
};

struct Clock(Chances);

impl EvictionPolicy for Clock {
    fn offer(&mut self, leaf: &Candidate) {
        self.0.join(leaf.id, leaf.uses);
        self.0.offer(leaf.id, leaf.uses);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.0.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.0.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.0.evicted(evicted.id, whole);
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.0.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.0.remove(head);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_use_is_a_second_chance_and_no_third() {
        let paths = asks(&["a", "b", "c", "a", "d", "e", "f", "g"]);
        assert_eq!(
            victims("clock", 3, &paths)[4..],
            ["b", "c", "a", "d"],
            "the queue is a b c, then c a d, a d e, d e f"
        );
    }

    #[test]
    fn a_parent_keeps_the_mark_it_got_from_its_children() {
        // "a" was used for "ab" and "ac": once they are gone it is passed over for e.
        let paths = asks(&["ab", "ac", "de", "f", "g"]);
        assert_eq!(victims("clock", 3, &paths)[2..], ["bc", "e", "d"]);
    }
}
