//! The golden cases of an independent implementation: LRU, FIFO and whole leaves, hit by hit.

use std::collections::{BTreeMap, BTreeSet};

use cache::{Cache, CacheConfig, EvictUnit, Replay};
use policies::PolicyContext;
use policy_api::{BlockId, PrefillCost};
use serde_json::Value;
use testkit::golden::{Golden, cost, golden_cases};

/// Golden name, our policies, our unit of eviction.
const POLICIES: [(&str, [&str; 2], EvictUnit); 5] = [
    ("lru", ["lru", "all"], EvictUnit::Block),
    ("fifo", ["fifo", "all"], EvictUnit::Block),
    (
        "second_occurrence_lru",
        ["lru", "second-occurrence(memory=unbounded)"],
        EvictUnit::Block,
    ),
    ("radix_node_lru", ["lru", "all"], EvictUnit::Leaf),
    (
        "radix_node_lru_sglang",
        ["lru", "all"],
        EvictUnit::LeafSglang,
    ),
];

struct Served {
    hit_blocks: Vec<u32>,
    recovered_seconds: f64,
    resident: BTreeSet<BlockId>,
}

fn serve(
    golden: &Golden,
    capacity_blocks: u64,
    names: [&str; 2],
    evict_unit: EvictUnit,
    cost: &dyn PrefillCost,
) -> Served {
    let workload = &golden.workload;
    let config = CacheConfig {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: workload.block_tokens(),
        evict_unit,
        state: None,
    };
    let context = PolicyContext::new(config, 0);
    let mut policy = policies::build(
        &policies::eviction(names[0]).unwrap(),
        &policies::admission(names[1]).unwrap(),
        &context,
    );
    let mut cache = Cache::new(config, workload.arena(), workload.distinct_blocks(), cost);
    let mut served = Served {
        hit_blocks: Vec::new(),
        recovered_seconds: 0.0,
        resident: BTreeSet::new(),
    };
    let requests = Replay::without_hints(workload.requests());
    cache.replay(requests, &mut policy, |one| {
        let cold = cost.prefill(u64::from(one.request.prompt_tokens), 0);
        served
            .hit_blocks
            .push(one.outcome.counters.hit_blocks as u32);
        served.recovered_seconds += cold.seconds - one.outcome.prefill.seconds;
    });
    assert_eq!(cache.fault_count(), 0);
    served.resident = cache.resident_blocks().into_iter().collect();
    served
}

/// Blocks by their first appearance, as the golden files name them.
fn first_appearances(golden: &Golden) -> BTreeMap<(u64, u64), BlockId> {
    let mut names = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (index, request) in golden.workload.requests().iter().enumerate() {
        for (position, &block) in golden.workload.path(request).iter().enumerate() {
            if seen.insert(block) {
                names.insert((index as u64, position as u64), block);
            }
        }
    }
    names
}

fn check(
    golden: &Golden,
    capacity: u64,
    name: &str,
    expected: &Value,
    names: [&str; 2],
    unit: EvictUnit,
) {
    let case = format!("{} at {capacity}: {name}", golden.name);
    let course = serve(golden, capacity, names, unit, cost("course").as_ref());
    assert_eq!(
        serde_json::json!(course.hit_blocks),
        expected["hit_pages"],
        "{case}"
    );
    let tokens: u64 = course
        .hit_blocks
        .iter()
        .map(|b| u64::from(b * golden.workload.block_tokens()))
        .sum();
    assert_eq!(Some(tokens), expected["hit_tokens"].as_u64(), "{case}");
    let causal = serve(golden, capacity, names, unit, cost("causal").as_ref());
    for (field, seconds) in [
        ("saved_seed_s", course.recovered_seconds),
        ("saved_causal_s", causal.recovered_seconds),
    ] {
        let wanted = expected[field].as_f64().unwrap();
        assert!(
            (seconds - wanted).abs() <= 1e-9 * wanted.abs().max(1e-12),
            "{case}: {seconds} {wanted}"
        );
    }
    if let Some(resident) = expected["final_resident"].as_array() {
        let names = first_appearances(golden);
        let wanted: BTreeSet<BlockId> = resident
            .iter()
            .map(|at| names[&(at[0].as_u64().unwrap(), at[1].as_u64().unwrap())])
            .collect();
        assert_eq!(course.resident, wanted, "{case}");
    }
}

#[test]
fn every_golden_case_comes_out() {
    let Some(cases) = golden_cases() else { return };
    let mut checked = 0;
    for golden in &cases {
        for (capacity, results) in golden.expected.as_object().unwrap() {
            for (name, names, unit) in POLICIES {
                if let Some(expected) = results.get(name) {
                    check(
                        golden,
                        capacity.parse().unwrap(),
                        name,
                        expected,
                        names,
                        unit,
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 100, "only {checked} golden results were found");
}

#[test]
fn path_lengths_are_those_of_the_golden_cases() {
    let Some(cases) = golden_cases() else { return };
    for golden in &cases {
        let requests = golden.workload.requests();
        let lengths = |blocks: &dyn Fn(&trace::Request) -> u32| {
            serde_json::json!(requests.iter().map(blocks).collect::<Vec<_>>())
        };
        assert_eq!(
            lengths(&|r| r.path_blocks),
            golden.facts["path_pages"],
            "{}",
            golden.name
        );
        assert_eq!(
            lengths(&|r| r.prompt_blocks),
            golden.facts["prompt_pages"],
            "{}",
            golden.name
        );
        let block_tokens = golden.workload.block_tokens();
        assert_eq!(
            lengths(&|r| r.usable_blocks(block_tokens)),
            golden.facts["usable_pages"],
            "{}",
            golden.name
        );
        assert_eq!(
            Some(u64::from(golden.workload.distinct_blocks())),
            golden.facts["pages"].as_u64()
        );
    }
}
