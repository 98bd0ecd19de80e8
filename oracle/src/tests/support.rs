//! Small traces, and slow obvious ways to what the oracle computes.

use std::sync::Arc;

use cache::{Cache, CacheConfig, EvictUnit, Replay};
use policies::PolicyContext;
use policy_api::{BlockId, Pair, PrefillCost, Work};
use proptest::prelude::*;
use roofline::PricedCost;
use trace::{Provenance, Request, Workload, WorkloadBuilder};

use crate::bracket::BlockMemory;
use crate::dual::{Stop, pfoo};
use crate::dual_search::{better_dual, first_dual};
use crate::intervals::Intervals;
use crate::oracle::Oracle;
use crate::prefix_program::{PrefixProgram, Relaxation};

use testkit::FlatCost;
use testkit::golden::cost;

pub(crate) const BLOCK_TOKENS: u32 = 4;

/// One request: the labels of its path's blocks, how many are the prompt's, and the prompt's tokens beyond them.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) labels: Vec<u64>,
    pub(crate) prompt_blocks: u32,
    pub(crate) extra_tokens: u32,
}

/// A prompt of these blocks and one token more, so that every block can count as a hit.
pub(crate) fn ask(labels: &[u64]) -> Ask {
    Ask {
        labels: labels.to_vec(),
        prompt_blocks: labels.len() as u32,
        extra_tokens: 1,
    }
}

/// A prompt that ends with its last block, which so cannot count as a hit.
pub(crate) fn aligned(labels: &[u64]) -> Ask {
    Ask {
        extra_tokens: 0,
        ..ask(labels)
    }
}

/// A trace in which equal labels under equal prefixes are equal blocks.
pub(crate) fn workload(asks: &[Ask]) -> Workload {
    let mut builder = WorkloadBuilder::new(BLOCK_TOKENS);
    for ask in asks {
        let mut parent = 0;
        let chained = ask.labels.iter().map(|label| {
            parent = parent * 31 + label + 1;
            parent
        });
        let path: Vec<_> = chained.collect();
        let request = Request {
            prompt_tokens: ask.prompt_blocks * BLOCK_TOKENS + ask.extra_tokens,
            prompt_blocks: ask.prompt_blocks,
            ..Request::default()
        };
        builder.push(request, &path).unwrap();
    }
    builder.finish(Provenance::default())
}

/// Traces of up to `requests` requests that share prefixes, end anywhere in a block, and may have output blocks.
pub(crate) fn asks(requests: usize) -> impl Strategy<Value = Vec<Ask>> {
    let one = (
        prop::collection::vec(0_u64..2, 0..4),
        0_u32..3,
        0..BLOCK_TOKENS,
    );
    let one = one.prop_map(|(labels, output_blocks, extra_tokens)| Ask {
        prompt_blocks: (labels.len() as u32).saturating_sub(output_blocks / 2),
        labels,
        extra_tokens,
    });
    prop::collection::vec(one, 1..requests)
}

/// The cost models of the course, and one with a floor and steps whose savings neither rise nor fall steadily.
pub(crate) fn costs() -> Vec<PricedCost> {
    let named = ["course", "course-linear", "causal"].map(cost);
    let floored = PricedCost {
        name: "floored".to_owned(),
        calibration: None,
        cost: Arc::new(Floored),
    };
    named.into_iter().chain([floored]).collect()
}

struct Floored;

impl PrefillCost for Floored {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let new_tokens = total_tokens.saturating_sub(cached_tokens);
        let steps = new_tokens.div_ceil(6) as f64;
        Work {
            seconds: steps.max(1.5) + 0.1 * (total_tokens * new_tokens) as f64,
            flops: 0.0,
        }
    }
}

/// The oracle of a cache of blocks of one byte.
pub(crate) fn prepared<'a>(
    workload: &'a Workload,
    cost: &'a (dyn PrefillCost + Send + Sync),
    warmup_requests: u32,
) -> Oracle<'a> {
    let memory = BlockMemory {
        block_bytes: 1,
        state: None,
    };
    Oracle::new(workload, cost, memory, warmup_requests)
}

/// The certified bound of one relaxation, where request `i` saves `saved(i, hit_blocks)`.
pub(crate) fn certified(
    intervals: &Intervals,
    saved: impl Fn(u32, u32) -> f64,
    capacity_blocks: u64,
    relaxation: Relaxation,
    steps: u32,
) -> f64 {
    let slots = capacity_blocks as f64;
    let program = PrefixProgram::new(intervals, saved, slots, None, relaxation);
    let stop = Stop {
        steps,
        gap: 0.0,
        lower: 0.0,
    };
    let first = first_dual(
        &program,
        Stop {
            steps: steps / 2,
            ..stop
        },
    );
    better_dual(&program, &first, stop).upper.min(first.upper)
}

/// PFOO-U, of the loosest program.
pub(crate) fn pfoo_bound(
    intervals: &Intervals,
    saved: impl Fn(u32, u32) -> f64,
    capacity_blocks: u64,
) -> f64 {
    let slots = capacity_blocks as f64;
    let program = PrefixProgram::new(intervals, saved, slots, None, Relaxation::Slots);
    pfoo(&program, slots).upper
}

/// Seconds that a request saves when its first blocks hit.
pub(crate) fn saved(
    workload: &Workload,
    cost: &dyn PrefillCost,
    time: u32,
    hit_blocks: u32,
) -> f64 {
    let prompt_tokens = u64::from(workload.requests()[time as usize].prompt_tokens);
    let hit_tokens = u64::from(hit_blocks * workload.block_tokens());
    cost.prefill(prompt_tokens, 0).seconds - cost.prefill(prompt_tokens, hit_tokens).seconds
}

/// What a policy of the registry did.
pub(crate) struct Served {
    pub(crate) hit_blocks: Vec<u32>,
    pub(crate) resident: Vec<BlockId>,
}

/// A cache of blocks of one byte.
pub(crate) fn config(workload: &Workload, capacity_blocks: u64) -> CacheConfig {
    CacheConfig {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: workload.block_tokens(),
        evict_unit: EvictUnit::Block,
        state: None,
    }
}

/// A policy pair of the registry for a cache of blocks of one byte.
pub(crate) fn pair(
    workload: &Workload,
    capacity_blocks: u64,
    eviction: &str,
    admission: &str,
) -> Pair {
    let context = PolicyContext::new(config(workload, capacity_blocks), 7);
    let eviction = policies::eviction(eviction).unwrap();
    let admission = policies::admission(admission).unwrap();
    policies::build(&eviction, &admission, &context)
}

/// Replays a policy pair of the registry.
pub(crate) fn serve(
    workload: &Workload,
    capacity_blocks: u64,
    eviction: &str,
    admission: &str,
) -> Served {
    let config = config(workload, capacity_blocks);
    let mut policy = pair(workload, capacity_blocks, eviction, admission);
    let distinct_blocks = workload.distinct_blocks();
    let mut cache = Cache::new(config, workload.arena(), distinct_blocks, &FlatCost);
    let mut hit_blocks = Vec::new();
    let requests = Replay::without_hints(workload.requests());
    cache.replay(requests, &mut policy, |served| {
        hit_blocks.push(served.outcome.counters.hit_blocks as u32);
    });
    assert_eq!(cache.fault_count(), 0);
    Served {
        hit_blocks,
        resident: cache.resident_blocks(),
    }
}

pub(crate) fn total(hit_blocks: &[u32]) -> u64 {
    hit_blocks.iter().map(|hit| u64::from(*hit)).sum()
}

/// Seconds that such hits save in all.
pub(crate) fn total_saved(workload: &Workload, cost: &dyn PrefillCost, hit_blocks: &[u32]) -> f64 {
    let each = (0..).zip(hit_blocks);
    each.map(|(time, hit)| saved(workload, cost, time, *hit))
        .sum()
}

/// The interval of one block, found by searching the trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockInterval {
    pub(crate) block: BlockId,
    pub(crate) depth: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) gainful: bool,
}

/// The intervals of all blocks, by their later touch, then by depth.
pub(crate) fn block_intervals(workload: &Workload) -> Vec<BlockInterval> {
    let mut found = Vec::new();
    for (to, request) in (0..).zip(workload.requests()) {
        for (depth, &block) in (0..).zip(workload.path(request)) {
            let before = (0..to).rev().find(|time| touches(workload, *time, block));
            found.extend(before.map(|from| BlockInterval {
                block,
                depth,
                from,
                to,
                gainful: depth < workload.usable_blocks(request),
            }));
        }
    }
    found
}

pub(crate) fn touches(workload: &Workload, time: u32, block: BlockId) -> bool {
    let request = &workload.requests()[time as usize];
    workload.path(request).contains(&block)
}
