//! Silly and cheating policies: the cache catches every wrong answer, reports it, and goes on within its capacity.

use cache::EvictUnit;
use policy_api::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, PolicyFault, RequestIndex, RequestView,
    Victim, WithdrawReason,
};
use proptest::prelude::*;
use testkit::{SmallTrace, ask};

/// Answers with whatever it was told to, in turn, whether or not it makes sense.
struct Silly {
    victims: Vec<Option<Victim>>,
    admissions: Vec<u32>,
    asked: usize,
    wants_rival: bool,
}

impl EvictionPolicy for Silly {
    fn offer(&mut self, _: &Candidate) {}
    fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
    fn victim(&mut self) -> Option<Victim> {
        self.asked += 1;
        self.victims[self.asked % self.victims.len()]
    }
    fn evicted(&mut self, _: &Candidate, _: bool) {}
}

impl AdmissionPolicy for Silly {
    fn needs_rival(&self) -> bool {
        self.wants_rival
    }
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        self.admissions[request.index.index() % self.admissions.len()]
    }
}

/// Names an inner node, to keep the leaf that it likes.
#[derive(Default)]
struct Cheat {
    parents: Vec<NodeId>,
}

impl EvictionPolicy for Cheat {
    fn offer(&mut self, leaf: &Candidate) {
        self.parents.extend(leaf.parent);
    }
    fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
    fn victim(&mut self) -> Option<Victim> {
        self.parents.last().map(|id| Victim::node(*id))
    }
    fn evicted(&mut self, _: &Candidate, _: bool) {}
}

impl AdmissionPolicy for Cheat {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.path.len() as u32
    }
}

fn silly(victim: Option<Victim>, admission: u32) -> Silly {
    Silly {
        victims: vec![victim],
        admissions: vec![admission],
        asked: 0,
        wants_rival: false,
    }
}

fn first_fault(mut policy: Silly) -> Option<PolicyFault> {
    let trace = SmallTrace::new(&[ask([1, 2]).aligned(), ask([3, 4, 5]).aligned()]);
    let mut cache = trace.cache(3, EvictUnit::Block);
    trace.serve_all(&mut cache, &mut policy);
    cache.first_fault().map(|(_, fault)| fault)
}

#[test]
fn every_kind_of_wrong_answer_is_named() {
    let outside = NodeId(99);
    assert_eq!(
        first_fault(silly(Some(Victim::node(outside)), 2)),
        Some(PolicyFault::NotEvictable(outside))
    );
    let nothing = Victim {
        id: NodeId(0),
        blocks: 0,
    };
    let not_enough = PolicyFault::AdmissionOutOfRange {
        blocks: 4,
        held: 0,
        path: 2,
    };
    assert_eq!(first_fault(silly(None, 4)), Some(not_enough));

    let trace = SmallTrace::new(&[ask([1, 2]).aligned(), ask([3, 4]).aligned()]);
    let fault = |victim| {
        let mut cache = trace.cache(3, EvictUnit::Block);
        trace.serve_all(&mut cache, &mut silly(victim, 2));
        cache.first_fault()
    };
    assert_eq!(
        fault(Some(nothing)),
        Some((RequestIndex(1), PolicyFault::NoBlocks(NodeId(0))))
    );
    assert_eq!(fault(None), Some((RequestIndex(1), PolicyFault::NoVictim)));
}

#[test]
fn a_parent_cannot_be_evicted_before_its_child() {
    let trace = SmallTrace::new(&[ask([1, 2, 3]), ask([1, 2, 4]), ask([5, 6]), ask([1, 2, 3])]);
    let mut cache = trace.cache(4, EvictUnit::Block);
    let outcomes = trace.serve_all(&mut cache, &mut Cheat::default());
    assert!(matches!(
        cache.first_fault(),
        Some((RequestIndex(2), PolicyFault::NotEvictable(_)))
    ));
    // The fresh blocks of the third request went instead: [1 2 3] is still there.
    assert_eq!(outcomes[3].counters.hit_blocks, 3);
    assert_eq!(cache.audit(), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_answer_breaks_the_cache(
        paths in prop::collection::vec(prop::collection::vec(0u32..3, 0..6), 1..30),
        victims in prop::collection::vec(prop::option::of((0u32..12, 0u32..4)), 1..20),
        admissions in prop::collection::vec(0u32..8, 1..20),
        capacity in 0u64..10,
    ) {
        let asks: Vec<_> = paths.iter().map(ask).collect();
        let trace = SmallTrace::of_blocks(2, &asks);
        let victims = victims.into_iter().map(|v| v.map(|(id, blocks)| Victim { id: NodeId(id), blocks })).collect();
        let mut policy = Silly { victims, admissions, asked: 0, wants_rival: true };
        for unit in [EvictUnit::Block, EvictUnit::Leaf, EvictUnit::LeafSglang] {
            let mut cache = trace.cache(capacity, unit);
            for index in 0..trace.requests.len() {
                trace.serve(index, &mut cache, &mut policy);
                prop_assert_eq!(cache.audit(), Ok(()));
            }
        }
    }
}
