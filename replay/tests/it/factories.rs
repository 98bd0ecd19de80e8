//! What a run is given: any policy that can build itself.

use cache::{EvictUnit, PolicyContext, PolicyFactory, Track};
use policy_api::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim,
    WithdrawReason,
};
use replay::{Baseline, RunConfig, RunRecord, Scenario, Warmup, sweep};
use trace::{Provenance, Request, Workload, WorkloadBuilder};

use testkit::golden::cost;

/// One block per request: 1 1 2 2 3 3 and so on.
fn workload() -> Workload {
    let mut builder = WorkloadBuilder::new(16);
    for index in 0..12 {
        let request = Request {
            prompt_tokens: 17,
            prompt_blocks: 1,
            ..Request::default()
        };
        builder.push(request, &[index / 2 + 1]).unwrap();
    }
    builder.finish(Provenance::default())
}

fn records(factories: &[PolicyFactory]) -> Vec<RunRecord> {
    let workload = workload();
    let cost = cost("course");
    let scenario = Scenario {
        trace_index: 0,
        trace: "pairs".to_owned(),
        workload: &workload,
        baseline: Baseline::new(&workload, cost.cost.as_ref(), Warmup::Requests(0)),
        cost,
        model: "course-7b".to_owned(),
        gpu: "course-h100".to_owned(),
        block_bytes: 1,
        state: None,
    };
    let configs = factories.iter().map(|policy| RunConfig {
        policy: policy.clone(),
        capacity_bytes: 2,
        evict_unit: EvictUnit::Block,
        seed: 0,
        timings: false,
    });
    let scenarios = [(scenario, configs.collect())];
    let mut finished = sweep(&scenarios, false, &|_| ());
    let runs = finished.remove(0);
    runs.into_iter().map(|run| run.record).collect()
}

/// One object that is both: it evicts by LRU, and admits what it has seen as often as it has evicted something.
#[derive(Default)]
struct Both {
    leaves: Ranked<Tick>,
    evicted: usize,
    panics_at: Option<usize>,
}

impl EvictionPolicy for Both {
    fn offer(&mut self, leaf: &Candidate) {
        self.leaves.put(leaf.id, leaf.created);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.leaves.remove(evicted.id);
        self.evicted += 1;
    }
}

impl AdmissionPolicy for Both {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        if self.panics_at == Some(self.evicted) {
            let nothing: Vec<u32> = Vec::new();
            return nothing[self.evicted];
        }
        request.path.len() as u32
    }
}

fn both(name: &str, panics_at: Option<usize>) -> PolicyFactory {
    PolicyFactory::new(name, name, Track::Online, move |_: &PolicyContext| {
        Box::new(Both {
            panics_at,
            ..Both::default()
        })
    })
}

#[test]
fn one_object_may_evict_and_admit_and_share_its_state() {
    let lru = policies::factory(
        &policies::eviction("lru").unwrap(),
        &policies::admission("all").unwrap(),
    );
    let records = records(&[lru, both("both", None)]);
    assert_eq!(records[1].policy, "both");
    assert_eq!(records[1].admission, "both");
    assert_eq!(records[1].counters, records[0].counters);
    assert_eq!(records[1].hit_tokens, 6 * 16);
}

#[test]
fn a_policy_that_panics_ends_its_own_run() {
    let records = records(&[
        both("calm", None),
        both("panics", Some(1)),
        both("after", None),
    ]);
    let failure = records[1].failure.as_deref().unwrap();
    // Two blocks fit. The fifth request brings the third block and evicts the first; the sixth asks again.
    assert!(
        failure.starts_with("the policy panicked at request 5: index out of bounds"),
        "{failure}"
    );
    assert_eq!(records[1].requests, 5);
    assert_eq!(records[1].counters.hit_blocks, 2);
    for record in [&records[0], &records[2]] {
        assert_eq!((record.failure.as_ref(), record.requests), (None, 12));
    }
}

#[test]
fn a_policy_that_cannot_be_built_fails_alone() {
    let broken = PolicyFactory::new("broken", "broken", Track::Online, |_: &PolicyContext| {
        panic!("no such file")
    });
    let records = records(&[broken, both("calm", None)]);
    assert_eq!(
        records[0].failure.as_deref(),
        Some("the policy panicked at request 0: no such file")
    );
    assert_eq!(records[1].failure, None);
}
