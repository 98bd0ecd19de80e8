//! Declared priorities, then LRU. On a trace without hints it is `lru`.

use policy_api::{Candidate, NodeId, Ranked, RequestView, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::node_table::NodeTable;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "priority",
    summary: "evicts the leaf of the lowest declared priority; among equals by last use",
    source: "SGLang (evict_policy.py, PriorityStrategy); TensorRT-LLM (priorities 0 to 100, default 35, with a retention time)",
    idea: "Whoever sends a request knows what it is worth. A priority holds for the whole path, so a node has the highest one of \
           all requests that used it and whose retention time has not ended. Reads the hints priority and priority_ttl_us.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "clients can ask for any priority they like",
    params: &[Param {
        name: "default",
        default: "35",
        domain: Domain::Count(0, 100),
        help: "priority of what declares none, or whose retention has ended",
    }],
    track: Track::Declared,
    build: BuildEviction::Alone(|_, params| {
        let default = params.count("default").unwrap_or_default() as u32;
        Box::new(Keyed::new(Priority::new(default)))
    }),
};

/// A priority and the time it ends.
#[derive(Clone, Copy)]
struct Claim {
    priority: u32,
    ends_us: i64,
}

struct Priority {
    default: Claim,
    now_us: i64,
    /// What the present request claims.
    present: Claim,
    /// Leaves whose claim ends, by when.
    ends: Ranked<i64>,
    places: NodeTable<LruOrder>,
}

impl Priority {
    fn new(default: u32) -> Self {
        let default = Claim {
            priority: default,
            ends_us: i64::MAX,
        };
        Self {
            default,
            now_us: i64::MIN,
            present: default,
            ends: Ranked::new(),
            places: NodeTable::new(),
        }
    }

    fn live(&self, claim: Claim) -> Claim {
        if claim.ends_us > self.now_us {
            claim
        } else {
            self.default
        }
    }

    fn claim_of(&self, request: &RequestView<'_>) -> Claim {
        let hints = request.hints.copied().unwrap_or_default();
        let Some(priority) = hints.priority else {
            return self.default;
        };
        let lasts_us = hints
            .priority_ttl_us
            .map_or(i64::MAX, |us| i64::try_from(us).unwrap_or(i64::MAX));
        Claim {
            priority,
            ends_us: request.arrival_us.saturating_add(lasts_us),
        }
    }

    fn end_claims(&mut self, order: &mut Ranked<(u32, LruOrder)>) {
        while let Some((ends_us, id)) = self.ends.first_entry()
            && ends_us <= self.now_us
        {
            self.ends.remove(id);
            if let Some(place) = self.places.get(id) {
                order.put(id, (self.default.priority, *place));
            }
        }
    }
}

impl Rule for Priority {
    type Order = Ranked<(u32, LruOrder)>;
    type State = Claim;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (u32, LruOrder) {
        let present = self.present;
        let claim = *nodes.states.entry(leaf.id, || present);
        let claim = self.live(claim);
        let place = lru_order(leaf);
        self.places.put(leaf.id, place);
        self.ends.put(leaf.id, claim.ends_us);
        (claim.priority, place)
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.now_us = request.arrival_us;
        self.present = self.claim_of(request);
        for node in path {
            let before = nodes.states.get(node.id).copied().unwrap_or(self.default);
            let before = self.live(before);
            let higher = if before.priority > self.present.priority {
                before
            } else {
                self.present
            };
            nodes.states.put(node.id, higher);
        }
        self.end_claims(&mut nodes.order);
    }

    fn withdrawn(&mut self, id: NodeId, _: WithdrawReason, _: &mut Nodes<Self>) {
        self.ends.remove(id);
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        self.ends.remove(evicted.id);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::Hints;

    use crate::testing::{Ask, ask, assert_is_lru, victims};

    fn with_priority(path: &str, priority: u32, ttl_s: Option<u64>) -> Ask {
        ask(path).hints(Hints {
            priority: Some(priority),
            priority_ttl_us: ttl_s.map(|s| s * 1_000_000),
            ..Hints::default()
        })
    }

    #[test]
    fn the_lower_priority_goes_whatever_its_use() {
        let paths = [
            with_priority("a", 80, None),
            ask("b"),
            with_priority("c", 10, None),
            ask("d"),
            ask("e"),
        ];
        assert_eq!(victims("priority", 3, &paths), ["", "", "", "c", "b"]);
    }

    #[test]
    fn a_shared_prefix_has_the_highest_priority_of_its_paths() {
        let paths = [
            ask("ab"),
            with_priority("ac", 80, None),
            with_priority("de", 90, None),
            with_priority("f", 50, None),
            with_priority("g", 85, None),
        ];
        // Once b and c are gone, "a" still has what "ac" asked for.
        assert_eq!(victims("priority", 3, &paths)[2..], ["bc", "f", "a"]);
    }

    #[test]
    fn after_its_retention_it_falls_back_to_the_default() {
        let keep = |ttl_s| [with_priority("a", 80, ttl_s), ask("b"), ask("c"), ask("d")];
        assert_eq!(victims("priority", 2, &keep(None)), ["", "", "b", "c"]);
        assert_eq!(victims("priority", 2, &keep(Some(2))), ["", "", "a", "b"]);
        assert_eq!(victims("priority", 2, &keep(Some(3))), ["", "", "b", "a"]);
    }

    #[test]
    fn without_hints_it_is_lru() {
        assert_is_lru("priority");
    }
}
