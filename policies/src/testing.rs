//! What the unit tests of policies share.

#[path = "../tests/it/support.rs"]
mod support;

use policy_api::{BlockId, Pair, RequestView, Work};

pub(crate) use support::{Ask, Trace, ask, asks};

use crate::registry::{Setup, admission, build, eviction};

fn pair(eviction_text: &str, admission_text: &str, capacity_blocks: u64) -> Pair {
    let setup = Setup {
        capacity_blocks,
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: 1,
        seed: 0,
    };
    build(
        &eviction(eviction_text).unwrap(),
        &admission(admission_text).unwrap(),
        &setup,
    )
}

/// What goes at each request under an eviction policy that everything is admitted to: a letter a block.
pub(crate) fn victims(policy: &str, capacity_blocks: u64, asks: &[Ask]) -> Vec<String> {
    Trace::new(asks).victims(capacity_blocks, &mut pair(policy, "all", capacity_blocks))
}

/// Blocks of each request's path that are resident once it was admitted, under LRU.
pub(crate) fn admitted(policy: &str, capacity_blocks: u64, asks: &[Ask]) -> Vec<u32> {
    Trace::new(asks).admitted(capacity_blocks, &mut pair("lru", policy, capacity_blocks))
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
