//! Declared priorities, then LRU.
//!
//! Source: SGLang (`evict_policy.py`, `PriorityStrategy`) and TensorRT-LLM, whose priorities go from 0 to 100 with 35 as
//! the default, and fall back to the default after a retention time. A request's priority holds for its whole path, so
//! that of a node is the highest of all requests that went through it and whose retention has not ended.
//!
//! Reads declared hints; on a trace without any it is `lru`. Cost: as `lru`, and one visit to every node of the path. Do not
//! use it where clients can ask for any priority they like.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "priority",
    summary: "the leaf of the lowest declared priority goes, then by last use",
    source: "SGLang (evict_policy.py, PriorityStrategy); TensorRT-LLM (retention priorities)",
    idea: "Whoever sends a request knows what it is worth. A node has the highest priority of all requests that went \
           through it, until its retention time ends. Reads the hints priority and priority_ttl_us; without hints it is lru.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path",
    avoid_when: "clients can ask for any priority they like",
    params: &[Param {
        name: "default",
        default: "35",
        domain: Domain::Count(0, 100),
        help: "priority of what declares none, or whose retention has ended",
    }],
    track: Track::Declared,
    build: |_, params| {
        Box::new(Priority::new(
            params.count("default").unwrap_or_default() as u32
        ))
    },
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
    claims: NodeTable<Claim>,
    ranked: Ranked<(u32, LruOrder)>,
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
            claims: NodeTable::new(),
            ranked: Ranked::new(),
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

    fn end_claims(&mut self) {
        while let Some((ends_us, id)) = self.ends.first_entry()
            && ends_us <= self.now_us
        {
            self.ends.remove(id);
            if let Some(place) = self.places.get(id) {
                self.ranked.put(id, (self.default.priority, *place));
            }
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.ranked.remove(id);
        self.ends.remove(id);
    }
}

impl EvictionPolicy for Priority {
    fn offer(&mut self, leaf: &Candidate) {
        let present = self.present;
        let claim = *self.claims.entry(leaf.id, || present);
        let claim = self.live(claim);
        let place = lru_order(leaf);
        self.places.put(leaf.id, place);
        self.ranked.put(leaf.id, (claim.priority, place));
        self.ends.put(leaf.id, claim.ends_us);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if whole {
            self.claims.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.claims.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.claims.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.present = self.claim_of(request);
        for node in nodes {
            let before = self.claims.get(node.id).copied().unwrap_or(self.default);
            let before = self.live(before);
            let higher = if before.priority > self.present.priority {
                before
            } else {
                self.present
            };
            self.claims.put(node.id, higher);
        }
        self.end_claims();
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
