//! Replays through the same cache as any policy.

use cache::{Cache, CacheConfig, EvictUnit, Replay, Track};
use policy_api::{Policy, PrefillCost, Work};
use trace::Workload;

/// The hit blocks of every request, as the cache served them.
pub(crate) type Hits = Vec<u32>;

/// Replays a schedule that knows the future, and so reads no costs off the cache, at one capacity.
pub(crate) fn replay(workload: &Workload, capacity_blocks: u64, policy: &mut dyn Policy) -> Hits {
    let config = CacheConfig {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: workload.block_tokens(),
        evict_unit: EvictUnit::Block,
        state: None,
    };
    replay_in(workload, config, &Unpriced, Track::Online, policy)
}

/// Replays any policy through any cache. The policy sees the trace's hints only on the declared track.
pub(crate) fn replay_in(
    workload: &Workload,
    config: CacheConfig,
    cost: &dyn PrefillCost,
    track: Track,
    policy: &mut dyn Policy,
) -> Hits {
    let distinct_blocks = workload.distinct_blocks();
    let mut cache = Cache::new(config, workload.arena(), distinct_blocks, cost);
    let mut hits = Vec::with_capacity(workload.requests().len());
    let requests = Replay::new(workload.requests(), workload.all_hints(), track);
    cache.replay(requests, policy, |served| {
        hits.push(served.outcome.counters.hit_blocks as u32);
    });
    hits
}

pub(crate) struct Unpriced;

impl PrefillCost for Unpriced {
    fn prefill(&self, _: u64, _: u64) -> Work {
        Work::default()
    }
}
