//! Declared remaining uses, then LRU. On a trace without hints it is `lru`.

use policy_api::{Candidate, Ranked, RequestView};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "parrot",
    summary: "evicts leaves with declared remaining uses last; among equals by last use",
    source: "Lin et al., Parrot: efficient serving of LLM-based applications with semantic variable, OSDI 2024 (reference counts \
             of the request graph)",
    idea: "An application knows which of its prompts it will send again. A request declares how many later ones will read its \
           whole path, and every request that uses a node uses one of them up; a node has the most that is left of any \
           declaration. Reads the hint remaining_uses.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "applications declare uses that do not happen",
    params: &[],
    track: Track::Declared,
    build: BuildEviction::Alone(|_, _| Box::new(Keyed::new(Parrot { declared: 0 }))),
};

struct Parrot {
    /// What the present request declares.
    declared: u32,
}

impl Rule for Parrot {
    type Order = Ranked<(bool, LruOrder)>;
    /// Remaining uses.
    type State = u32;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (bool, LruOrder) {
        let remaining = *nodes.states.entry(leaf.id, || self.declared);
        (remaining > 0, lru_order(leaf))
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        let hint = request.hints.and_then(|hints| hints.remaining_uses);
        self.declared = hint.unwrap_or(0);
        for node in path {
            let remaining = nodes.states.entry(node.id, || 0);
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
