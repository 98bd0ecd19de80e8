//! LRU that sees leaves only.

use policy_api::{Candidate, CandidateKind, EvictionPolicy, NodeId, Victim, WithdrawReason};

use crate::parts::keyed::{Keyed, LruOrder, lru_order};
use crate::parts::request_order::{ByRequest, by_request};

/// Evicts the leaf used longest ago, with all it holds: the states of inner nodes stay until their leaves are gone.
pub(crate) struct LeafLru(Keyed<ByRequest<LruKey>>);

type LruKey = fn(&Candidate) -> LruOrder;

impl LeafLru {
    pub(crate) fn new() -> Self {
        Self(by_request(lru_order))
    }
}

impl EvictionPolicy for LeafLru {
    fn offer(&mut self, candidate: &Candidate) {
        match candidate.kind {
            CandidateKind::Leaf => self.0.offer(candidate),
            CandidateKind::State => self.0.withdraw(candidate.id, WithdrawReason::Used),
        }
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.0.withdraw(id, why);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.0.victim()
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.0.evicted(evicted, whole);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::Tick;

    use super::*;
    use crate::testing::leaf;

    #[test]
    fn a_state_above_a_leaf_is_passed_over_however_old() {
        let mut policy = LeafLru::new();
        let state = Candidate {
            kind: CandidateKind::State,
            ..leaf(1)
        };
        policy.offer(&leaf(1));
        policy.offer(&Candidate {
            last_used: Tick(5),
            ..leaf(2)
        });
        assert_eq!(policy.victim(), Some(Victim::node(NodeId(1))));
        policy.offer(&state);
        assert_eq!(policy.victim(), Some(Victim::node(NodeId(2))));
    }
}
