//! Replays through the same cache as any policy.

use cache::{Cache, CacheConfig, EvictUnit};
use policy_api::{Policy, PrefillCost, Work};
use trace::Workload;

/// The hit blocks of every request, as the cache served them.
pub type Hits = Vec<u32>;

/// Replays a schedule that knows the future, and so reads no costs off the cache, at one capacity.
pub fn replay(workload: &Workload, capacity_blocks: u64, policy: &mut dyn Policy) -> Hits {
    let config = CacheConfig {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: workload.block_tokens(),
        evict_unit: EvictUnit::Block,
        state: None,
    };
    replay_in(workload, config, &Unpriced, policy)
}

/// Replays any policy through a cache of any shape.
pub(crate) fn replay_in(
    workload: &Workload,
    config: CacheConfig,
    cost: &dyn PrefillCost,
    policy: &mut dyn Policy,
) -> Hits {
    let distinct_blocks = workload.distinct_blocks();
    let mut cache = Cache::new(config, workload.arena(), distinct_blocks, cost);
    let mut hits = Vec::with_capacity(workload.requests().len());
    for (index, request) in (0..).zip(workload.requests()) {
        let hints = workload.hints(index as usize);
        hits.push(cache.serve(index, request, hints, policy).hit_blocks);
    }
    hits
}

pub(crate) struct Unpriced;

impl PrefillCost for Unpriced {
    fn prefill(&self, _: u64, _: u64) -> Work {
        Work::default()
    }
}
