//! A whole eviction policy: what was used once is evicted first, the longest unused before the others.
//!
//! It is a template, and a bad policy: on agents the newest blocks of a session have one use, and are reused at its next step. To
//! see it in `replay`, put it into `policies/src/eviction/mine.rs` with an `ENTRY`, and add the line `mod mine;` to the `mod.rs`
//! beside it. There this policy is one line, since `parts::keyed` does what is written out here.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, Tick, Victim, WithdrawReason};

/// Leaves by whether they were used twice, then by last use.
#[derive(Default)]
pub struct OnceUsedFirst {
    leaves: Ranked<(bool, Tick)>,
}

impl EvictionPolicy for OnceUsedFirst {
    /// The leaf may be evicted from now on. All its blocks share these facts.
    fn offer(&mut self, leaf: &Candidate) {
        self.leaves.put(leaf.id, (leaf.uses >= 2, leaf.last_used));
    }

    /// It may no longer be evicted: a request uses it.
    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    /// Which leaf should be evicted next? Being asked must change nothing.
    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }

    /// This much of it was evicted. What is left of it, or its parent, is offered next.
    fn evicted(&mut self, evicted: &Candidate, _whole: bool) {
        self.leaves.remove(evicted.id);
    }
}

#[cfg(test)]
mod tests {
    use cache::EvictUnit;
    use policies::PolicyContext;
    use policy_api::Pair;
    use testkit::{SmallTrace, asks, config};

    use super::*;

    #[test]
    fn a_second_use_protects() {
        let all = policies::admission("all").unwrap();
        let context = PolicyContext::new(config(2, EvictUnit::Block, None), 0);
        let mut policy = Pair {
            eviction: Box::new(OnceUsedFirst::default()),
            admission: (all.entry.build)(&context, &all.params),
        };
        // Four requests of one block each, in a cache of two blocks. LRU would have evicted a.
        let trace = SmallTrace::new(&asks(&["a", "a", "b", "c"]));
        assert_eq!(trace.victims(2, &mut policy), ["", "", "", "b"]);
    }
}
