//! Declared remaining uses, then LRU.
//!
//! Source: Lin et al., "Parrot: efficient serving of LLM-based applications with semantic variable", OSDI 2024, whose
//! reference counts come from the graph of an application's requests. No node that is still to be used goes while one that
//! is not is left; within both, the longest unused goes.
//!
//! A request declares how many later ones will read its whole path; every request that goes through a node uses one up. A
//! node has the most of what was declared for it and is not used up.
//!
//! Reads declared hints; on a trace without any it is `lru`. Cost: as `lru`, and one visit to every node of the path. Do not
//! use it where applications declare uses that do not come.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "parrot",
    summary: "leaves with declared remaining uses go last, then by last use",
    source: "Lin et al., Parrot, OSDI 2024 (reference counts of the request graph)",
    idea: "An application knows which of its prompts it will send again. Reads the hint remaining_uses; without hints it \
           is lru.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "applications declare uses that do not come",
    params: &[],
    track: Track::Declared,
    build: |_, _| Box::new(Parrot::new()),
};

struct Parrot {
    ranked: Ranked<(bool, LruOrder)>,
    remaining: NodeTable<u32>,
    declared: u32,
}

impl Parrot {
    fn new() -> Self {
        Self {
            ranked: Ranked::new(),
            remaining: NodeTable::new(),
            declared: 0,
        }
    }
}

impl EvictionPolicy for Parrot {
    fn offer(&mut self, leaf: &Candidate) {
        let declared = self.declared;
        let remaining = *self.remaining.entry(leaf.id, || declared);
        self.ranked.put(leaf.id, (remaining > 0, lru_order(leaf)));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.ranked.remove(evicted.id);
        if whole {
            self.remaining.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.remaining.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.remaining.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        let hint = request.hints.and_then(|hints| hints.remaining_uses);
        self.declared = hint.unwrap_or(0);
        for node in nodes {
            let remaining = self.remaining.entry(node.id, || 0);
            *remaining = remaining.saturating_sub(1).max(self.declared);
        }
    }
}

#[cfg(test)]
mod tests {
    use policy_api::Hints;

    use crate::testing::{Ask, ask, assert_is_lru, victims};

    fn declared(path: &str, remaining_uses: u32) -> Ask {
        ask(path).hints(Hints {
            remaining_uses: Some(remaining_uses),
            ..Hints::default()
        })
    }

    #[test]
    fn what_is_still_to_be_used_stays() {
        let paths = [declared("a", 1), ask("b"), ask("c"), ask("d")];
        assert_eq!(victims("parrot", 2, &paths)[2..], ["b", "c"]);
    }

    #[test]
    fn a_use_uses_one_up() {
        let paths = [
            declared("a", 1),
            ask("b"),
            ask("a"),
            ask("b"),
            ask("c"),
            ask("d"),
        ];
        assert_eq!(victims("parrot", 2, &paths)[4..], ["a", "b"]);
    }

    #[test]
    fn when_all_are_still_to_be_used_the_oldest_goes() {
        let paths = [declared("a", 2), declared("b", 1), declared("c", 1)];
        assert_eq!(victims("parrot", 2, &paths)[2], "a");
    }

    #[test]
    fn without_hints_it_is_lru() {
        assert_is_lru("parrot");
    }
}
