//! Faults that other engines had, as small cases. The numbers are those of the project's list of known faults.

use cache::{EvictUnit, Usage};
use policy_api::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, Pair, RequestView, Victim, WithdrawReason,
};

use testkit::{SmallTrace, ask};

use crate::support::policy;

/// 1, 2: a lookup has no side effect, so a request that is looked up again or resumed adds neither query nor hit.
#[test]
fn case_01_02_a_repeated_lookup_counts_nothing() {
    let trace = SmallTrace::of_blocks(4, &[ask([1, 2]).aligned()]);
    let mut cache = trace.cache(8, EvictUnit::Block);
    let mut lru = policy("lru", 8);
    for _ in 0..3 {
        assert_eq!(cache.held_blocks(trace.path(0)), 0);
    }
    assert_eq!(trace.serve(0, &mut cache, &mut lru).counters.hit_blocks, 0);
    let facts = cache.candidates();
    for _ in 0..3 {
        assert_eq!(cache.held_blocks(trace.path(0)), 2);
    }
    assert_eq!(cache.candidates(), facts);
}

/// 3: an 8-token prompt prefilled in chunks of 4 hits nothing: it is one request.
#[test]
fn case_03_a_prompt_does_not_hit_itself() {
    let trace = SmallTrace::of_blocks(4, &[ask([1, 2]).aligned()]);
    assert_eq!(trace.hits(8, &mut policy("lru", 8)), [0]);
}

/// 4: the last token is always computed.
#[test]
fn case_04_the_last_token_is_never_a_hit() {
    let twice = |block_tokens, labels: &[u32], extra| {
        let trace = SmallTrace::of_blocks(
            block_tokens,
            &[
                ask(labels).extra_tokens(extra),
                ask(labels).extra_tokens(extra),
            ],
        );
        trace.hits(64, &mut policy("lru", 64))[1] * u64::from(block_tokens)
    };
    assert_eq!(twice(4, &[1, 2], 0), 4);
    assert_eq!(twice(1, &[1, 2, 3, 4, 5, 6, 7, 8], 0), 7);
    assert_eq!(twice(4, &[1, 2], 1), 8);
}

/// 5: a prompt shorter than a block.
#[test]
fn case_05_less_than_a_block_leaves_no_trace() {
    let trace = SmallTrace::of_blocks(4, &[ask([]).extra_tokens(3)]);
    let mut cache = trace.cache(8, EvictUnit::Block);
    let outcomes = trace.serve_all(&mut cache, &mut policy("lru", 8));
    assert_eq!(outcomes[0].counters.hit_blocks, 0);
    assert_eq!(
        cache.usage(),
        Usage {
            free_blocks: 8,
            evictable_blocks: 0,
            pinned_blocks: 0
        }
    );
    assert_eq!(cache.candidates(), []);
}

/// 6: a lookup that ends inside the first block splits nothing.
#[test]
fn case_06_no_split_of_length_zero() {
    for unit in [EvictUnit::Block, EvictUnit::Leaf, EvictUnit::LeafSglang] {
        let trace = SmallTrace::of_blocks(
            4,
            &[
                ask([1]).aligned(),
                ask([]).extra_tokens(3),
                ask([2]).aligned(),
            ],
        );
        let mut cache = trace.cache(1, unit);
        let mut lru = policy("lru", 1);
        trace.serve(0, &mut cache, &mut lru);
        let before = cache.candidates();
        trace.serve(1, &mut cache, &mut lru);
        assert_eq!(cache.candidates(), before);
        trace.serve(2, &mut cache, &mut lru);
        assert_eq!(cache.resident_blocks(), trace.path(2));
        assert_eq!(cache.fault_count(), 0);
    }
}

/// 7: shared blocks are counted once, whatever is pinned.
#[test]
fn case_07_free_evictable_and_pinned_add_up() {
    let trace = SmallTrace::of_blocks(
        4,
        &[
            ask([1, 2]).aligned(),
            ask([1, 3]).aligned(),
            ask([4, 5]).aligned(),
        ],
    );
    let mut cache = trace.cache(4, EvictUnit::Block);
    let mut lru = policy("lru", 4);
    let usage = |free_blocks, evictable_blocks, pinned_blocks| Usage {
        free_blocks,
        evictable_blocks,
        pinned_blocks,
    };
    trace.serve(0, &mut cache, &mut lru);
    assert_eq!(cache.usage(), usage(2, 2, 0));
    let first = cache.pin(trace.path(0), &mut lru);
    trace.serve(1, &mut cache, &mut lru);
    let second = cache.pin(trace.path(1), &mut lru);
    assert_eq!(cache.usage(), usage(1, 0, 3));
    trace.serve(2, &mut cache, &mut lru);
    assert_eq!(cache.usage(), usage(0, 1, 3));
    cache.unpin(first, &mut lru);
    assert_eq!(cache.usage(), usage(0, 2, 2));
    cache.unpin(second, &mut lru);
    assert_eq!(cache.usage(), usage(0, 4, 0));
    assert_eq!(cache.audit(), Ok(()));
}

/// 8: a partial match does not refresh what it does not match.
#[test]
fn case_08_the_unmatched_suffix_stays_old() {
    let trace = SmallTrace::new(&[
        ask([1, 2, 3, 4]).aligned(),
        ask([9, 9]).aligned(),
        ask([1, 2]).aligned(),
        ask([7, 8]).aligned(),
    ]);
    let mut cache = trace.cache(6, EvictUnit::Block);
    trace.serve_all(&mut cache, &mut policy("lru", 6));
    assert_eq!(cache.held_blocks(trace.path(0)), 2, "[3 4] went");
    assert_eq!(cache.held_blocks(trace.path(1)), 2, "[9 9] stayed");
}

/// 9: never a resident child without its parent. (The audit checks it after every request of every test.)
#[test]
fn case_09_a_prefix_outlives_its_suffix() {
    let trace = SmallTrace::new(&[ask([1, 2, 3]), ask([1, 4]), ask([5, 6]), ask([7])]);
    for name in ["lru", "fifo"] {
        let mut cache = trace.cache(4, EvictUnit::Block);
        let mut policy = policy(name, 4);
        for index in 0..trace.requests.len() {
            trace.serve(index, &mut cache, &mut policy);
            assert_eq!(cache.audit(), Ok(()));
        }
    }
}

/// 10: matched blocks are used before they can go.
#[test]
fn case_10_what_is_matched_is_not_evicted_for_the_same_request() {
    let trace = SmallTrace::new(&[ask([1, 2]), ask([1, 2, 3])]);
    assert_eq!(trace.hits(2, &mut policy("lru", 2)), [0, 2]);
}

/// 15: an item larger than the cache; capacities of nothing.
#[test]
fn case_15_nothing_wraps_below_zero() {
    for capacity in 0..4 {
        for unit in [EvictUnit::Block, EvictUnit::Leaf, EvictUnit::LeafSglang] {
            let trace = SmallTrace::new(&[
                ask([1, 2, 3, 4, 5]).aligned(),
                ask([1, 2, 3, 4, 5]).aligned(),
            ]);
            let mut cache = trace.cache(capacity, unit);
            trace.serve_all(&mut cache, &mut policy("lru", capacity));
            assert_eq!(cache.usage().free_blocks, 0);
            assert_eq!(cache.usage().evictable_blocks, capacity);
            assert_eq!(cache.fault_count(), 0);
        }
    }
}

/// 20: cold tokens are in the denominator. 22: the token rate is not the block rate.
#[test]
fn case_20_22_rates_count_all_tokens() {
    let trace = SmallTrace::of_blocks(4, &[ask([1, 2]), ask([1, 2])]);
    let hit_tokens: u64 = trace
        .hits(8, &mut policy("lru", 8))
        .iter()
        .map(|blocks| blocks * 4)
        .sum();
    let prompt_tokens: u32 = trace
        .requests
        .iter()
        .map(|request| request.prompt_tokens)
        .sum();
    assert_eq!((hit_tokens, u64::from(prompt_tokens)), (8, 18));

    let short = ask([1]).aligned();
    let trace = SmallTrace::of_blocks(4, &[short, ask([1, 3])]);
    let hits = trace.hits(8, &mut policy("lru", 8));
    assert_eq!((hits[1] * 4, trace.requests[1].prompt_tokens), (4, 9));
}

/// Asks for a victim before every admission, and refuses the newcomer when `refuse` says so.
struct Asking {
    inner: Pair,
    refuse: bool,
}

impl EvictionPolicy for Asking {
    fn offer(&mut self, candidate: &Candidate) {
        self.inner.offer(candidate);
    }
    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.inner.withdraw(id, why);
    }
    fn victim(&mut self) -> Option<Victim> {
        let victim = self.inner.victim();
        assert_eq!(self.inner.victim(), victim);
        victim
    }
    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.inner.evicted(evicted, whole);
    }
}

impl AdmissionPolicy for Asking {
    fn needs_rival(&self) -> bool {
        self.refuse
    }
    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        assert!(
            rival.is_none_or(|rival| !request.path.contains(&rival.last_block)),
            "the rival is its own prefix"
        );
        let refused = request.index.0 == 2;
        if refused {
            request.held_blocks
        } else {
            self.inner.admit(request, rival)
        }
    }
}

/// 23: to be asked for a victim changes nothing.
#[test]
fn case_23_asking_for_a_victim_changes_nothing() {
    let asks = [&[1][..], &[2], &[3], &[1], &[4], &[2], &[5], &[1]].map(ask);
    let trace = SmallTrace::new(&asks);
    let residents = |refuse| {
        let mut cache = trace.cache(2, EvictUnit::Block);
        let mut asking = Asking {
            inner: policy("lru", 2),
            refuse,
        };
        let mut after_each = Vec::new();
        for index in 0..trace.requests.len() {
            trace.serve(index, &mut cache, &mut asking);
            after_each.push(cache.resident_blocks());
        }
        assert_eq!(cache.fault_count(), 0);
        after_each
    };
    assert_eq!(residents(true), residents(false));
}
