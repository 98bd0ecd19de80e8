//! The cache against a slow obvious model: a set of blocks that is searched from end to end.

use std::collections::BTreeMap;

use cache::{EvictUnit, Pin};
use policy_api::BlockId;
use proptest::prelude::*;
use testkit::{SmallTrace, any_asks};

use crate::support::policy;

#[derive(Clone, Copy, Debug)]
struct Facts {
    created: u32,
    last_used: u32,
    depth: usize,
    parent: Option<BlockId>,
}

/// Semantics section 2, a block at a time.
struct Naive {
    capacity: usize,
    resident: BTreeMap<BlockId, Facts>,
    key: fn(&Facts) -> u32,
}

impl Naive {
    fn serve(&mut self, trace: &SmallTrace, index: usize) -> u32 {
        let (path, request) = (trace.path(index), &trace.requests[index]);
        let held = path
            .iter()
            .take_while(|block| self.resident.contains_key(block))
            .count();
        let usable = request.prompt_tokens.saturating_sub(1) / trace.block_tokens;
        for (depth, &block) in path.iter().enumerate() {
            let parent = depth.checked_sub(1).map(|above| path[above]);
            let fresh = Facts {
                created: index as u32,
                last_used: index as u32,
                depth,
                parent,
            };
            self.resident
                .entry(block)
                .and_modify(|facts| facts.last_used = index as u32)
                .or_insert(fresh);
        }
        while self.resident.len() > self.capacity {
            self.evict();
        }
        (held as u32).min(usable)
    }

    fn evict(&mut self) {
        let has_child = |block: &BlockId| {
            self.resident
                .values()
                .any(|facts| facts.parent == Some(*block))
        };
        let victim = self
            .resident
            .iter()
            .filter(|(block, _)| !has_child(block))
            .min_by_key(|(_, facts)| ((self.key)(facts), std::cmp::Reverse(facts.depth)))
            .map(|(block, _)| *block);
        self.resident.remove(&victim.expect("a tree has a leaf"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn hits_and_residents_are_those_of_the_model(asks in any_asks(), capacity in 0u64..16, lru in any::<bool>()) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache(capacity, EvictUnit::Block);
        let mut policy = policy(if lru { "lru" } else { "fifo" }, capacity);
        let key = if lru { |facts: &Facts| facts.last_used } else { |facts: &Facts| facts.created };
        let mut naive = Naive { capacity: capacity as usize, resident: BTreeMap::new(), key };
        for index in 0..trace.requests.len() {
            let outcome = trace.serve(index, &mut cache, &mut policy);
            prop_assert_eq!(outcome.counters.hit_blocks, u64::from(naive.serve(&trace, index)), "request {}", index);
            let resident: Vec<_> = naive.resident.keys().copied().collect();
            prop_assert_eq!(cache.resident_blocks(), resident, "after request {}", index);
            prop_assert_eq!(cache.audit(), Ok(()));
        }
        prop_assert_eq!(cache.fault_count(), 0);
    }

    /// Whole leaves with an unrefreshed tail hold a part of what block LRU holds, after every request.
    #[test]
    fn whole_leaves_hold_a_subset_of_block_lru(asks in any_asks(), capacity in 0u64..16) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let (mut blocks, mut leaves) = (policy("lru", capacity), policy("lru", capacity));
        let mut by_block = trace.cache(capacity, EvictUnit::Block);
        let mut by_leaf = trace.cache(capacity, EvictUnit::Leaf);
        for index in 0..trace.requests.len() {
            trace.serve(index, &mut by_block, &mut blocks);
            trace.serve(index, &mut by_leaf, &mut leaves);
            prop_assert!(by_leaf.resident_blocks().iter().all(|block| by_block.is_resident(*block)));
            prop_assert_eq!(by_leaf.audit(), Ok(()));
        }
        prop_assert_eq!(by_leaf.fault_count(), 0);
    }

    /// Pins come and go between requests; what is pinned stays, and the sum of all blocks is the capacity.
    #[test]
    fn pinned_paths_stay(asks in any_asks(), capacity in 1u64..16, pins in prop::collection::vec(any::<bool>(), 40)) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache(capacity, EvictUnit::Block);
        let mut policy = policy("lru", capacity);
        let mut pinned: Vec<(&[BlockId], u32, Pin)> = Vec::new();
        for (index, pins) in (0..trace.requests.len()).zip(pins) {
            trace.serve(index, &mut cache, &mut policy);
            for (path, held, _) in &pinned {
                prop_assert!(cache.held_blocks(path) >= *held, "a pinned block went");
            }
            if pins {
                let path = trace.path(index);
                let held = cache.held_blocks(path);
                pinned.push((path, held, cache.pin(path, &mut policy)));
            } else if let Some((_, _, pin)) = pinned.pop() {
                cache.unpin(pin, &mut policy);
            }
            let usage = cache.usage();
            prop_assert_eq!(usage.free_blocks + usage.evictable_blocks + usage.pinned_blocks, capacity);
            prop_assert_eq!(cache.audit(), Ok(()));
        }
        for (_, _, pin) in pinned {
            cache.unpin(pin, &mut policy);
        }
        prop_assert_eq!(cache.usage().pinned_blocks, 0);
        prop_assert_eq!(cache.audit(), Ok(()));
        prop_assert_eq!(cache.fault_count(), 0);
    }
}
