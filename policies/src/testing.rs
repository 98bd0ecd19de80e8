//! What the unit tests of policies share: the test kit, and policies of the registry.

use cache::EvictUnit;
use policy_api::Pair;
pub(crate) use testkit::{Ask, FlatCost, SmallTrace as Trace, ask, asks, config, leaf, view};

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

/// What each request evicts under an eviction policy that everything is admitted to: a letter per block.
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
