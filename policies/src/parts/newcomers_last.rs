//! Room is made before anything is admitted: what the present request admits is evicted last.
//!
//! In the cache a request's own fresh node is a leaf like any other, which lets a policy refuse it. Policies whose papers
//! evict first and insert then (queues, above all) would meet the newcomer where they never expect one: at the hand of
//! SIEVE, say, where it would be the next victim for ever.

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Tick, Victim, WithdrawReason};

use crate::parts::node_table::NodeTable;

/// Keeps the newcomers of the present request from a policy, which hears of them when the next request begins. There is one
/// where KV is per token; where states are saved there may be several, from the root down.
///
/// ```text
///   cache:   observe(1)  offer(new)  victim()        evicted(old)   observe(2)
///   policy:  observe(1)              victim(), old   evicted(old)   offer(new), observe(2)
/// ```
pub(crate) struct NewcomersLast<P> {
    policy: P,
    now: Option<Tick>,
    newcomers: Vec<Candidate>,
    /// Nodes that the policy has heard of. The head of a split is one, though a state saved there comes as a newcomer.
    heard_of: NodeTable<()>,
}

impl<P: EvictionPolicy> NewcomersLast<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self {
            policy,
            now: None,
            newcomers: Vec::new(),
            heard_of: NodeTable::new(),
        }
    }

    fn reveal(&mut self) {
        for newcomer in self.newcomers.drain(..) {
            self.heard_of.put(newcomer.id, ());
            self.policy.offer(&newcomer);
        }
    }

    fn place_of(&self, id: NodeId) -> Option<usize> {
        self.newcomers
            .iter()
            .rposition(|newcomer| newcomer.id == id)
    }
}

impl<P: EvictionPolicy> EvictionPolicy for NewcomersLast<P> {
    fn offer(&mut self, leaf: &Candidate) {
        if Some(leaf.created) != self.now {
            self.heard_of.put(leaf.id, ());
            return self.policy.offer(leaf);
        }
        match self.place_of(leaf.id) {
            Some(place) => self.newcomers[place] = *leaf,
            None => self.newcomers.push(*leaf),
        }
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        if self.place_of(id).is_some() {
            self.reveal();
        }
        self.policy.withdraw(id, why);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.policy
            .victim()
            .or_else(|| Some(Victim::node(self.newcomers.last()?.id)))
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        if let Some(place) = self.place_of(evicted.id) {
            self.newcomers.remove(place);
        }
        if self.heard_of.get(evicted.id).is_some() {
            self.policy.evicted(evicted, whole);
        }
        if whole {
            self.heard_of.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.reveal();
        self.heard_of.split(head, tail);
        self.policy.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        self.heard_of.remove(head);
        self.policy.merge(head, tail, head_blocks);
    }

    fn wants_path_nodes(&self) -> bool {
        self.policy.wants_path_nodes()
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.reveal();
        self.now = Some(request.now);
        self.policy.observe(request, nodes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::all;
    use crate::parts::keyed::by_key;
    use crate::testing::{Trace, asks, context, leaf, view};
    use params::Params;
    use policy_api::Pair;

    /// Writes down what it is told of nodes that are evicted.
    #[derive(Default)]
    struct Hears(std::rc::Rc<std::cell::RefCell<Vec<u32>>>);

    impl EvictionPolicy for Hears {
        fn offer(&mut self, _: &Candidate) {}
        fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
        fn victim(&mut self) -> Option<Victim> {
            None
        }
        fn evicted(&mut self, evicted: &Candidate, _: bool) {
            self.0.borrow_mut().push(evicted.id.0);
        }
    }

    /// The head of a split node is known, though the state that is saved at its end comes with the present request.
    #[test]
    fn what_was_heard_of_is_told_when_it_is_evicted() {
        let heard = Hears::default();
        let evicted = heard.0.clone();
        let mut policy = NewcomersLast::new(heard);
        policy.offer(&leaf(1));
        policy.observe(
            &RequestView {
                now: Tick(5),
                ..view(&[])
            },
            &[],
        );
        policy.split(NodeId(2), NodeId(1));
        let fresh = |id| Candidate {
            created: Tick(5),
            ..leaf(id)
        };
        policy.offer(&fresh(2));
        policy.offer(&fresh(3));
        policy.evicted(&fresh(3), true);
        policy.evicted(&fresh(2), true);
        assert_eq!(*evicted.borrow(), [2]);
    }

    #[test]
    fn the_newcomer_is_evicted_only_when_nothing_else_is_left() {
        // The youngest first: without the wrapper every newcomer would go at once.
        let youngest = by_key(|leaf| std::cmp::Reverse(leaf.created));
        let mut policy = Pair {
            eviction: Box::new(NewcomersLast::new(youngest)),
            admission: (all::ENTRY.build)(&context(2, 0), &Params::parse(&[], "").unwrap()),
        };
        let trace = Trace::new(&asks(&["a", "b", "c", "d", "efgh", "ab"]));
        let victims = trace.victims(2, &mut policy);
        assert_eq!(victims, ["", "", "b", "c", "dahg", "fe"]);
    }
}
