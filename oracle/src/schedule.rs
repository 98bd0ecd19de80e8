//! Replays of schedules that know the future, through the same cache as any policy.

use cache::{Cache, EvictUnit, Shape};
use policy_api::{Policy, PrefillCost, Work};
use trace::Workload;

/// Feasible by construction: the hit blocks of every request, as the cache served them.
pub type Hits = Vec<u32>;

/// Replays the whole trace at one capacity under a policy.
pub fn replay(workload: &Workload, capacity_blocks: u64, policy: &mut dyn Policy) -> Hits {
    let shape = Shape {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: workload.block_tokens(),
        evict_unit: EvictUnit::Block,
    };
    let distinct_blocks = workload.distinct_blocks();
    let mut cache = Cache::new(shape, workload.arena(), distinct_blocks, &Unpriced);
    (0..)
        .zip(workload.requests())
        .map(|(index, request)| cache.serve(index, request, None, policy).hit_blocks)
        .collect()
}

/// Schedules that know the future read no costs off the cache.
struct Unpriced;

impl PrefillCost for Unpriced {
    fn prefill(&self, _: u64, _: u64) -> Work {
        Work::default()
    }
}
