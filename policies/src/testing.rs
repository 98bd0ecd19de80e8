//! What the unit tests of policies share.

#[path = "../tests/it/support.rs"]
mod support;

use policy_api::{BlockId, Candidate, CandidateKind, NodeId, Pair, RequestView, Work};

pub(crate) use support::{Ask, FlatCost, Trace, ask, asks, config};

use cache::EvictUnit;

use crate::entry::PolicyContext;
use crate::registry::{admission, build, eviction};

/// A cache of so many blocks of one token and one byte.
pub(crate) fn context(capacity_blocks: u64, seed: u64) -> PolicyContext {
    PolicyContext::new(config(capacity_blocks, EvictUnit::Block, None), seed)
}

fn pair(policies: [&str; 2], context: PolicyContext) -> Pair {
    build(
        &eviction(policies[0]).unwrap(),
        &admission(policies[1]).unwrap(),
        &context,
    )
}

/// An eviction policy that everything is admitted to.
pub(crate) fn pair_seeded(policy: &str, capacity_blocks: u64, seed: u64) -> Pair {
    pair([policy, "all"], context(capacity_blocks, seed))
}

/// What goes at each request under an eviction policy that everything is admitted to: a letter a block.
pub(crate) fn victims(policy: &str, capacity_blocks: u64, asks: &[Ask]) -> Vec<String> {
    Trace::new(asks).victims(
        capacity_blocks,
        &mut pair_seeded(policy, capacity_blocks, 0),
    )
}

/// Requests that say nothing but their path are served as under LRU.
pub(crate) fn assert_is_lru(policy: &str) {
    let paths = asks(&["ab", "c", "abd", "e", "fg", "ab", "h", "cd", "a", "e"]);
    assert_eq!(victims(policy, 4, &paths), victims("lru", 4, &paths));
}

/// Blocks of each request's path that are resident once it was admitted, under LRU.
pub(crate) fn admitted(policy: &str, capacity_blocks: u64, asks: &[Ask]) -> Vec<u32> {
    let mut pair = pair(["lru", policy], context(capacity_blocks, 0));
    Trace::new(asks).admitted(capacity_blocks, &mut pair)
}

/// A request of which nothing is resident.
pub(crate) fn view(path: &[BlockId]) -> RequestView<'_> {
    RequestView {
        index: 0,
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

/// A leaf of one block, used once, by request 0.
pub(crate) fn leaf(id: u32) -> Candidate {
    Candidate {
        id: NodeId(id),
        parent: None,
        first_block: id,
        last_block: id,
        depth_blocks: 0,
        blocks: 1,
        base_blocks: 0,
        kind: CandidateKind::Leaf,
        bytes: 1,
        created: 0,
        last_used: 0,
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
