//! Room is made before anything comes in: what the present request admits goes last.
//!
//! In the cache a request's own fresh run is a leaf like any other, which lets a policy refuse it. Policies whose papers
//! evict first and insert then (queues, above all) would meet the newcomer where they never expect one: at the hand of
//! SIEVE, say, where it would be the next victim for ever.

use policy_api::{Candidate, EvictionPolicy, RequestView, RunId, Victim, Why};

/// Keeps the newcomer of the present request from a policy, which hears of it when the next request begins.
pub(crate) struct NewcomersLast<P> {
    policy: P,
    now: Option<u32>,
    newcomer: Option<Candidate>,
}

impl<P: EvictionPolicy> NewcomersLast<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self {
            policy,
            now: None,
            newcomer: None,
        }
    }

    fn reveal(&mut self) {
        if let Some(newcomer) = self.newcomer.take() {
            self.policy.offer(&newcomer);
        }
    }

    fn is_newcomer(&self, id: RunId) -> bool {
        self.newcomer.is_some_and(|newcomer| newcomer.id == id)
    }
}

impl<P: EvictionPolicy> EvictionPolicy for NewcomersLast<P> {
    fn offer(&mut self, leaf: &Candidate) {
        if Some(leaf.created) == self.now {
            self.newcomer = Some(*leaf);
        } else {
            self.policy.offer(leaf);
        }
    }

    fn withdraw(&mut self, id: RunId, why: Why) {
        if self.is_newcomer(id) {
            self.reveal();
        }
        self.policy.withdraw(id, why);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.policy
            .victim()
            .or_else(|| Some(Victim::run(self.newcomer?.id)))
    }

    fn evicted(&mut self, gone: &Candidate, whole: bool) {
        if self.is_newcomer(gone.id) {
            self.newcomer = None;
        } else {
            self.policy.evicted(gone, whole);
        }
    }

    fn split(&mut self, head: RunId, tail: RunId) {
        self.reveal();
        self.policy.split(head, tail);
    }

    fn merge(&mut self, head: RunId, tail: RunId) {
        self.reveal();
        self.policy.merge(head, tail);
    }

    fn wants_runs(&self) -> bool {
        self.policy.wants_runs()
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.reveal();
        self.now = Some(request.index);
        self.policy.observe(request, runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::all;
    use crate::params::Params;
    use crate::parts::by_key::ByKey;
    use crate::testing::{Trace, asks, setup};
    use policy_api::Pair;

    #[test]
    fn the_newcomer_goes_only_when_nothing_else_is_left() {
        // The youngest first: without the wrapper every newcomer would go at once.
        let youngest = ByKey::new(|leaf: &Candidate| std::cmp::Reverse(leaf.created));
        let mut policy = Pair {
            eviction: Box::new(NewcomersLast::new(youngest)),
            admission: (all::ENTRY.build)(&setup(2, 0), &Params::parse(&[], "").unwrap()),
        };
        let trace = Trace::new(&asks(&["a", "b", "c", "d", "efgh", "ab"]));
        let victims = trace.victims(2, &mut policy);
        assert_eq!(victims, ["", "", "b", "c", "dahg", "fe"]);
    }
}
