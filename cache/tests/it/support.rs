//! Policies of the registry for the tests of the cache, and a look at what they are offered.

use std::collections::BTreeMap;

use cache::EvictUnit;
use policies::PolicyContext;
use policy_api::{BlockId, Candidate, NodeId, Pair, PolicyCall, Work};
use testkit::config;

/// A registered eviction policy that admits everything.
pub(crate) fn policy(name: &str, capacity_blocks: u64) -> Pair {
    pair(name, "all", capacity_blocks)
}

/// Registered policies.
pub(crate) fn pair(name: &str, admission: &str, capacity_blocks: u64) -> Pair {
    let context = PolicyContext::new(config(capacity_blocks, EvictUnit::Block, None), 0);
    policies::build(
        &policies::eviction(name).expect("registered"),
        &policies::admission(admission).expect("registered"),
        &context,
    )
}

/// What a policy that writes everything down knows to be evictable.
#[derive(Default)]
pub(crate) struct Offers(BTreeMap<NodeId, Candidate>);

impl Offers {
    /// Writes a call down, and checks that it is about what was offered.
    pub(crate) fn note(&mut self, call: PolicyCall<'_>) {
        match call {
            PolicyCall::Offer(candidate) => {
                self.0.insert(candidate.id, *candidate);
            }
            PolicyCall::Withdraw(id, _) => {
                assert!(self.0.remove(&id).is_some(), "{id:?} was not evictable");
            }
            PolicyCall::Evicted { part, whole } => self.note_evicted(part, whole),
            PolicyCall::Merge { head, .. } => {
                assert!(!self.0.contains_key(&head), "what merges is not evictable");
            }
            _ => (),
        }
    }

    fn note_evicted(&mut self, part: &Candidate, whole: bool) {
        // Only what an abandoned request brought in was never offered.
        let Some(offered) = self.0.remove(&part.id) else {
            return assert_eq!((part.uses, whole), (0, true));
        };
        assert_eq!(part.kind, offered.kind);
        assert!(!whole || (part.bytes, part.blocks) == (offered.bytes, offered.blocks));
    }

    pub(crate) fn of(&self, last_block: BlockId) -> Option<&Candidate> {
        self.0.values().find(|one| one.last_block == last_block)
    }

    pub(crate) fn all(&self) -> Vec<Candidate> {
        but_for_states(self.0.values())
    }
}

/// Candidates without what depends on the states above, which may come and go without a new offer.
pub(crate) fn but_for_states<'a>(all: impl IntoIterator<Item = &'a Candidate>) -> Vec<Candidate> {
    let but_for_states = |one: &Candidate| Candidate {
        base_blocks: 0,
        recompute: Work::default(),
        ..*one
    };
    all.into_iter().map(but_for_states).collect()
}
