//! A whole eviction policy: what was used once is evicted first, the longest unused before the others.
//!
//! It is a template, and a bad policy: on agents the newest blocks of a session have one use, and are reused at its next step. To
//! see it in `replay`, put it into `policies/src/eviction/mine.rs` with an `ENTRY`, and add the line `mod mine;` to the `mod.rs`
//! beside it. There this policy is one line, since `parts::keyed` does what is written out here.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, Victim, WithdrawReason};

/// Leaves by whether they were used twice, then by last use.
#[derive(Default)]
pub struct OnceUsedFirst {
    leaves: Ranked<(bool, u32)>,
}

impl EvictionPolicy for OnceUsedFirst {
    /// The leaf may be evicted from now on. All its blocks share these facts.
    fn offer(&mut self, leaf: &Candidate) {
        self.leaves.put(leaf.id, (leaf.uses >= 2, leaf.last_used));
    }

    /// It may no longer be evicted: a request uses it.
    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    /// Which leaf should be evicted next? Being asked must change nothing.
    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }

    /// This much of it was evicted. What is left of it, or its parent, is offered next.
    fn evicted(&mut self, evicted: &Candidate, _whole: bool) {
        self.leaves.remove(evicted.id);
    }
}

#[cfg(test)]
mod tests {
    use cache::{Cache, CacheConfig, EvictUnit};
    use policies::PolicyContext;
    use policy_api::{Pair, PrefillCost, Request, Work};

    use super::*;

    /// A token costs a second.
    struct Flat;

    impl PrefillCost for Flat {
        fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
            let seconds = (total_tokens - cached_tokens) as f64;
            Work {
                seconds,
                flops: seconds,
            }
        }
    }

    #[test]
    fn a_second_use_protects() {
        // Four requests of one block each: block 0 twice, then 1 and 2, in a cache of two blocks.
        let blocks = [0, 0, 1, 2];
        let config = CacheConfig {
            capacity_bytes: 2,
            block_bytes: 1,
            block_tokens: 1,
            evict_unit: EvictUnit::Block,
            state: None,
        };
        let context = PolicyContext::new(config, 0);
        let all = policies::admission("all").unwrap();
        let mut policy = Pair {
            eviction: Box::new(OnceUsedFirst::default()),
            admission: (all.entry.build)(&context, &all.params),
        };
        let mut cache = Cache::new(config, &blocks, 3, &Flat);
        for (index, path_start) in (0..).zip(0..blocks.len()) {
            let request = Request {
                path_start,
                path_blocks: 1,
                prompt_blocks: 1,
                prompt_tokens: 2,
                seen_blocks: u32::from(index == 1),
                ..Request::default()
            };
            cache.serve(index, &request, None, &mut policy);
        }
        assert_eq!(
            cache.resident_blocks(),
            [0, 2],
            "LRU would have kept 1, not 0"
        );
        assert_eq!(cache.fault_count(), 0);
    }
}
