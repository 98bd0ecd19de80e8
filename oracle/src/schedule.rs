//! Replays of schedules that know the future, through the same cache as any policy.

use cache::{Cache, EvictUnit, Request, Shape};
use policy_api::{Policy, PrefillCost, Work};
use trace::Workload;

use crate::intervals::Time;

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
        .map(|(index, request)| cache.serve(&asked(index, request), policy).hit_blocks)
        .collect()
}

/// Schedules that know the future read no costs off the cache.
struct Unpriced;

impl PrefillCost for Unpriced {
    fn prefill(&self, _: u64, _: u64) -> Work {
        Work::default()
    }
}

fn asked(index: Time, request: &trace::Request) -> Request<'static> {
    Request {
        index,
        path_start: request.path_start,
        path_blocks: request.path_blocks,
        prompt_blocks: request.prompt_blocks,
        seen_blocks: request.seen_blocks,
        prompt_tokens: request.prompt_tokens,
        output_tokens: request.output_tokens,
        arrival_us: request.arrival_us,
        session: request.session_id,
        step: request.step,
        kind: request.kind,
        tool: request.tool,
        tenant: request.tenant,
        hints: None,
    }
}
