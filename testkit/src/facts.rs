//! Facts of which a test changes those that it is about.

use cache::{CacheConfig, EvictUnit};
use policy_api::{
    BlockId, Candidate, CandidateKind, NodeId, PrefillCost, RequestIndex, RequestView, StateBytes,
    Tick, Work,
};

/// Every token costs one second and one FLOP.
pub struct FlatCost;

impl PrefillCost for FlatCost {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let tokens = (total_tokens - cached_tokens) as f64;
        Work {
            seconds: tokens,
            flops: tokens,
        }
    }
}

/// A cache of blocks of one token and one byte.
pub fn config(
    capacity_bytes: u64,
    evict_unit: EvictUnit,
    state: Option<StateBytes>,
) -> CacheConfig {
    CacheConfig {
        capacity_bytes,
        block_bytes: 1,
        block_tokens: 1,
        evict_unit,
        state,
    }
}

/// The first request, all of it prompt, of which nothing is resident.
pub fn view(path: &[BlockId]) -> RequestView<'_> {
    RequestView {
        index: RequestIndex(0),
        now: Tick(0),
        arrival_us: 0,
        session: 0,
        step: 0,
        kind: 0,
        tool: None,
        tenant: 0,
        prompt_tokens: path.len() as u32 + 1,
        output_tokens: 0,
        path,
        prompt_blocks: path.len() as u32,
        held_blocks: 0,
        hit_blocks: 0,
        prefill: Work::default(),
        hints: None,
    }
}

/// A leaf of one block, used once, by the first request.
pub fn leaf(id: u32) -> Candidate {
    Candidate {
        id: NodeId(id),
        parent: None,
        first_block: BlockId(id),
        last_block: BlockId(id),
        depth_blocks: 0,
        blocks: 1,
        base_blocks: 0,
        kind: CandidateKind::Leaf,
        bytes: 1,
        created: Tick(0),
        last_used: Tick(0),
        last_request: RequestIndex(0),
        uses: 1,
        last_session: 0,
        last_step: 0,
        last_kind: 0,
        recompute: Work {
            seconds: 1.0,
            flops: 1.0,
        },
        children_seen: 0,
    }
}
