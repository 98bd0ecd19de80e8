//! The oracle for saved states against brute force, and against every pair of the registry.

use std::collections::BTreeMap;

use cache::{Cache, CacheConfig, Replay};
use policies::{ADMISSION, EVICTION, PolicyContext};
use policy_api::{BlockId, StateBytes};
use proptest::prelude::*;
use trace::Workload;

use crate::bracket::{BlockMemory, OracleOptions};
use crate::oracle::Oracle;

use super::support::{asks, config, costs, saved, total_saved, workload};

/// Resident blocks and saved states, as bits by block.
type Held = (u32, u32);

/// What no schedule passes, and some schedule reaches: a search of all that can be held after each request.
fn optimum(
    workload: &Workload,
    capacity: u32,
    state_weight: u32,
    value: impl Fn(u32, u32) -> f64,
) -> f64 {
    let mut reached: BTreeMap<Held, f64> = BTreeMap::from([((0, 0), 0.0)]);
    for (time, request) in (0..).zip(workload.requests()) {
        let path = workload.path(request);
        let usable = workload.usable_blocks(request);
        let mut next = BTreeMap::new();
        for ((blocks, states), so_far) in reached {
            let held = path
                .iter()
                .take_while(|block| blocks >> block.0 & 1 == 1)
                .count() as u32;
            let resumes = |end: &u32| states >> path[*end as usize - 1].0 & 1 == 1;
            let hit = (1..=held.min(usable)).rev().find(resumes).unwrap_or(0);
            let passed = path
                .iter()
                .skip(hit as usize)
                .fold(0, |bits, block| bits | 1 << block.0);
            let all = path.iter().fold(blocks, |bits, block| bits | 1 << block.0);
            let gained = so_far + value(time, hit);
            for kept in subsets(all).filter(|kept| is_closed(workload, *kept)) {
                for saved in subsets((states | passed) & kept) {
                    if kept.count_ones() + state_weight * saved.count_ones() <= capacity {
                        let best: &mut f64 = next.entry((kept, saved)).or_insert(gained);
                        *best = best.max(gained);
                    }
                }
            }
        }
        reached = next;
    }
    reached.values().copied().fold(0.0, f64::max)
}

fn subsets(of: u32) -> impl Iterator<Item = u32> {
    let next = move |subset: &u32| (*subset != 0).then(|| (subset - 1) & of);
    std::iter::successors(Some(of), next)
}

/// No block without the one above it.
fn is_closed(workload: &Workload, blocks: u32) -> bool {
    let has = |block: BlockId| blocks >> block.0 & 1 == 1;
    workload.requests().iter().all(|request| {
        workload
            .path(request)
            .windows(2)
            .all(|two| has(two[0]) || !has(two[1]))
    })
}

fn states(state_weight: u32) -> StateBytes {
    StateBytes {
        fixed: u64::from(state_weight),
        ..StateBytes::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_bracket_holds_the_optimum(
        asks in asks(6),
        capacity in 0_u32..7,
        state_weight in 0_u32..4,
    ) {
        let workload = workload(&asks);
        prop_assume!(workload.distinct_blocks() <= 8);
        let block_tokens = workload.block_tokens();
        for cost in costs() {
            let memory = BlockMemory { block_bytes: 1, state: Some(states(state_weight)) };
            let oracle = Oracle::new(&workload, cost.as_ref(), memory, 0);
            let bracket = oracle.bracket(u64::from(capacity), &OracleOptions { steps: 60, ..OracleOptions::default() });
            let tokens = |_, hit: u32| f64::from(hit * block_tokens);
            let most = optimum(&workload, capacity, state_weight, tokens) as u64;
            prop_assert!(bracket.tokens.lower <= most && most <= bracket.tokens.upper, "{:?} {}", bracket.tokens, most);
            let value = |time, hit| saved(&workload, cost.as_ref(), time, hit);
            let most = optimum(&workload, capacity, state_weight, value);
            let (lower, upper) = (bracket.seconds.lower, bracket.seconds.upper);
            prop_assert!(lower <= most * (1.0 + 1e-9) && most <= upper * (1.0 + 1e-9), "{} {} {}", lower, most, upper);
        }
    }

    /// States whose weight depends on the depth, and no policy above the bound.
    #[test]
    fn no_pair_passes_the_bound(
        asks in asks(20),
        capacity in 0_u64..12,
        fixed in 0_u64..3,
        window_tokens in 0_u64..12,
    ) {
        let workload = workload(&asks);
        let state = StateBytes { fixed, per_token: 1, window_tokens };
        let config = CacheConfig { block_bytes: 2, state: Some(state), ..config(&workload, capacity) };
        for cost in costs() {
            let memory = BlockMemory { block_bytes: 2, state: Some(state) };
            let oracle = Oracle::new(&workload, cost.as_ref(), memory, 0);
            let bracket = oracle.bracket(capacity, &OracleOptions { steps: 30, ..OracleOptions::default() });
            prop_assert!(bracket.seconds.lower <= bracket.seconds.upper * (1.0 + 1e-9));
            for eviction in EVICTION {
                let registered = ADMISSION.iter().map(|entry| entry.name);
                for admission in registered.chain(["checkpoint-every(tokens=1)"]) {
                    let mut policy = policies::build(
                        &policies::eviction(eviction.name).unwrap(),
                        &policies::admission(admission).unwrap(),
                        &PolicyContext::new(config, 1),
                    );
                    let mut cache = Cache::new(config, workload.arena(), workload.distinct_blocks(), cost.as_ref());
                    let mut hits: Vec<u32> = Vec::new();
                    cache.replay(Replay::without_hints(workload.requests()), &mut policy, |served| {
                        hits.push(served.outcome.counters.hit_blocks as u32);
                    });
                    let hit_tokens = hits.iter().map(|hit| u64::from(hit * workload.block_tokens())).sum::<u64>();
                    let recovered = total_saved(&workload, cost.as_ref(), &hits);
                    prop_assert!(hit_tokens <= bracket.tokens.upper, "{} {}", eviction.name, admission);
                    prop_assert!(recovered <= bracket.seconds.upper * (1.0 + 1e-9), "{} {}", eviction.name, admission);
                }
            }
        }
    }
}
