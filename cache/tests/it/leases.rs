//! Requests that overlap, against a slow obvious model and against requests that do not.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cache::{Cache, EvictUnit, EvictionReason, Lease, NoRoom, Outcome};
use policy_api::{BlockId, Inspect, Policy, RequestIndex};
use proptest::prelude::*;
use testkit::{SmallTrace, any_asks, ask, asks};

use crate::support::{Offers, but_for_states, pair, policy};

/// What a test does next. Leases are counted from the oldest, around.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// The next request begins.
    LookUp,
    /// The next request is served in one go.
    Serve,
    Reserve {
        lease: usize,
        blocks: u32,
    },
    Finish(usize),
    Abandon(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::LookUp),
        1 => Just(Act::Serve),
        5 => (0usize..5, 0u32..8).prop_map(|(lease, blocks)| Act::Reserve { lease, blocks }),
        2 => (0usize..5).prop_map(Act::Finish),
        1 => (0usize..5).prop_map(Act::Abandon),
    ];
    prop::collection::vec(act, 1..120)
}

fn look_up(
    trace: &SmallTrace,
    index: usize,
    cache: &mut Cache<'_>,
    policy: &mut dyn Policy,
) -> Lease {
    let request = &trace.requests[index];
    cache.lookup(
        RequestIndex(index as u32),
        request,
        trace.hints(index),
        policy,
    )
}

#[derive(Clone, Copy, Debug)]
struct Facts {
    last_used: usize,
    depth: usize,
    parent: Option<BlockId>,
    finished: bool,
    holders: u32,
}

/// Blocks one by one, under LRU. A lease is a path and how much of it is held.
struct Naive<'t> {
    capacity: usize,
    now: usize,
    resident: BTreeMap<BlockId, Facts>,
    leases: Vec<(&'t [BlockId], usize)>,
}

impl<'t> Naive<'t> {
    fn held(&self, path: &[BlockId]) -> usize {
        let is_resident = |block: &&BlockId| self.resident.contains_key(block);
        path.iter().take_while(is_resident).count()
    }

    fn of(&mut self, block: BlockId) -> &mut Facts {
        self.resident.get_mut(&block).expect("resident")
    }

    fn hold(&mut self, blocks: &[BlockId]) {
        blocks.iter().for_each(|block| self.of(*block).holders += 1);
    }

    fn look_up(&mut self, path: &'t [BlockId]) -> usize {
        let held = self.held(path);
        self.hold(&path[..held]);
        self.leases.push((path, held));
        held
    }

    fn insert(&mut self, path: &[BlockId], depth: usize, finished: bool) {
        let facts = Facts {
            last_used: self.now,
            depth,
            parent: depth.checked_sub(1).map(|above| path[above]),
            finished,
            holders: u32::from(!finished),
        };
        self.resident.insert(path[depth], facts);
    }

    fn reserve(&mut self, lease: usize, blocks: usize) -> bool {
        let (path, mut end) = self.leases[lease];
        let goal = blocks.min(path.len());
        let held = self.held(&path[..goal]);
        if held > end {
            self.hold(&path[end..held]);
            end = held;
        }
        self.leases[lease].1 = end;
        let needed = goal.saturating_sub(end);
        let held_by_any = self.held_by_any();
        if held_by_any + needed > self.capacity {
            return false;
        }
        self.make_room(needed);
        for depth in end..goal {
            self.insert(path, depth, false);
        }
        self.leases[lease].1 = end.max(goal);
        true
    }

    fn held_by_any(&self) -> usize {
        let holders = self.resident.values().filter(|facts| facts.holders > 0);
        holders.count()
    }

    fn finish(&mut self, lease: usize) {
        let (path, end) = self.leases.remove(lease);
        let now = self.now;
        for &block in &path[..end] {
            let facts = self.of(block);
            facts.last_used = now;
            facts.finished = true;
            facts.holders -= 1;
        }
    }

    fn abandon(&mut self, lease: usize) {
        let (path, end) = self.leases.remove(lease);
        for &block in path[..end].iter().rev() {
            self.of(block).holders -= 1;
            let facts = self.resident[&block];
            if facts.holders == 0 && !facts.finished && !self.has_child(block) {
                self.resident.remove(&block);
            }
        }
    }

    fn serve(&mut self, path: &[BlockId]) -> usize {
        let held = self.held(path);
        let now = self.now;
        for (depth, &block) in path.iter().enumerate() {
            if depth < held {
                let facts = self.of(block);
                facts.last_used = now;
                facts.finished = true;
            } else {
                self.insert(path, depth, true);
            }
        }
        self.make_room(0);
        held
    }

    fn has_child(&self, block: BlockId) -> bool {
        let mut all = self.resident.values();
        all.any(|facts| facts.parent == Some(block))
    }

    fn make_room(&mut self, needed: usize) {
        while self.resident.len() + needed > self.capacity {
            let leaves = self.resident.iter();
            let leaves = leaves.filter(|(block, f)| f.holders == 0 && !self.has_child(**block));
            let oldest = leaves.min_by_key(|(_, f)| (f.last_used, std::cmp::Reverse(f.depth)));
            let oldest = *oldest.expect("a leaf that nobody holds").0;
            self.resident.remove(&oldest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_overlap_is_that_of_the_model(asks in any_asks(), acts in acts(), capacity in 0usize..20) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache(capacity as u64, EvictUnit::Block);
        let mut lru = policy("lru", capacity as u64);
        let mut naive = Naive { capacity, now: 0, resident: BTreeMap::new(), leases: Vec::new() };
        let mut leases: Vec<Lease> = Vec::new();
        let mut next = 0;
        for act in acts {
            naive.now += 1;
            let count = leases.len().max(1);
            match act {
                Act::LookUp if next < trace.requests.len() => {
                    let lease = look_up(&trace, next, &mut cache, &mut lru);
                    let held = naive.look_up(trace.path(next));
                    prop_assert_eq!(lease.outcome().held_blocks as usize, held);
                    leases.push(lease);
                    next += 1;
                }
                Act::Serve if next < trace.requests.len() => {
                    let outcome = trace.serve(next, &mut cache, &mut lru);
                    prop_assert_eq!(outcome.held_blocks as usize, naive.serve(trace.path(next)));
                    next += 1;
                }
                Act::Reserve { lease, blocks } if !leases.is_empty() => {
                    let lease = lease % count;
                    let fits = cache.reserve(&mut leases[lease], blocks, &mut lru).is_ok();
                    prop_assert_eq!(fits, naive.reserve(lease, blocks as usize));
                    prop_assert_eq!(leases[lease].resident_blocks() as usize, naive.leases[lease].1);
                }
                Act::Finish(lease) if !leases.is_empty() => {
                    cache.finish(leases.remove(lease % count), &mut lru);
                    naive.finish(lease % count);
                }
                Act::Abandon(lease) if !leases.is_empty() => {
                    cache.abandon(leases.remove(lease % count), &mut lru);
                    naive.abandon(lease % count);
                }
                _ => (),
            }
            let resident: Vec<_> = naive.resident.keys().copied().collect();
            prop_assert_eq!(cache.resident_blocks(), resident, "after {:?}", act);
            prop_assert_eq!(cache.usage().pinned_blocks as usize, naive.held_by_any());
            prop_assert_eq!(cache.audit(), Ok(()));
        }
        prop_assert_eq!(cache.first_fault(), None);
    }

    /// Whatever overlaps, by leaves or with states: the tree is whole, nothing that is held leaves, no room is lost, and a policy that
    /// writes down what it is offered knows what the cache would offer.
    #[test]
    fn any_overlap_keeps_the_cache_whole(
        asks in any_asks(),
        acts in acts(),
        capacity in 0u64..40,
        kind in 0usize..4,
        admission in prop::sample::select(vec!["all", "marconi", "checkpoint-every(tokens=4)"]),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = match kind {
            0 | 1 => trace.cache_of_states(capacity, 2),
            2 => trace.cache(capacity, EvictUnit::Leaf),
            _ => trace.cache(capacity, EvictUnit::LeafSglang),
        };
        let mut lru = pair("lru", admission, capacity);
        let mut offers = Offers::default();
        let mut leases: Vec<Lease> = Vec::new();
        let mut next = 0;
        for act in acts {
            let mut lru = Inspect::new(&mut lru, |_, call| offers.note(call));
            step(&trace, act, &mut next, &mut leases, &mut cache, &mut lru);
            prop_assert_eq!(cache.audit(), Ok(()));
            for lease in &leases {
                let path = trace.path(lease.index().index());
                prop_assert!(cache.held_blocks(path) >= lease.resident_blocks(), "a held block left");
            }
            prop_assert_eq!(offers.all(), but_for_states(&cache.candidates()));
        }
        for lease in leases.drain(..) {
            cache.finish(lease, &mut lru);
        }
        prop_assert_eq!(cache.audit(), Ok(()));
        prop_assert_eq!(cache.usage().pinned_blocks, 0);
        prop_assert_eq!(cache.first_fault(), None);
        // With nothing held, everything can be evicted: a request as large as the cache fits.
        prop_assert!(cache.used_bytes() <= capacity);
    }

    /// A request that is looked up, reserved and finished with none in between is served, but for what does not fit.
    #[test]
    fn one_after_another_is_to_serve(
        asks in any_asks(),
        capacity in 0u64..24,
        chunk in 1u32..4,
        unit in prop::sample::select(EvictUnit::ALL.to_vec()),
        name in prop::sample::select(vec!["lru", "fifo"]),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let (mut served, mut leased) = (trace.cache(capacity, unit), trace.cache(capacity, unit));
        let (mut one, mut other) = (policy(name, capacity), policy(name, capacity));
        for index in 0..trace.requests.len() {
            if trace.path(index).len() as u64 > capacity {
                continue;
            }
            let outcome = trace.serve(index, &mut served, &mut one);
            let same = in_chunks(&trace, index, chunk, &mut leased, &mut other);
            prop_assert_eq!(Ok(outcome), same, "request {}", index);
            prop_assert_eq!(served.resident_blocks(), leased.resident_blocks());
        }
    }

    /// The same with states, as long as nothing is evicted: a request that is under way holds the states on its path.
    #[test]
    fn one_after_another_is_to_serve_with_states(
        asks in any_asks(),
        chunk in 1u32..4,
        admission in prop::sample::select(vec!["all", "marconi", "checkpoint-every(tokens=4)"]),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let (mut served, mut leased) = (trace.cache_of_states(1000, 2), trace.cache_of_states(1000, 2));
        let (mut one, mut other) = (pair("lru", admission, 1000), pair("lru", admission, 1000));
        for index in 0..trace.requests.len() {
            let outcome = trace.serve(index, &mut served, &mut one);
            let same = in_chunks(&trace, index, chunk, &mut leased, &mut other);
            prop_assert_eq!(Ok(outcome), same, "request {}", index);
            prop_assert_eq!(served.resident_blocks(), leased.resident_blocks());
            prop_assert_eq!(served.saved_states(), leased.saved_states());
            let facts = |cache: &Cache<'_>| -> Vec<_> {
                let all = cache.candidates();
                let mut facts: Vec<_> = all.iter().map(|c| (c.last_block, c.blocks, c.uses, c.last_request, c.bytes)).collect();
                facts.sort_unstable();
                facts
            };
            prop_assert_eq!(facts(&served), facts(&leased));
        }
    }
}

fn in_chunks(
    trace: &SmallTrace,
    index: usize,
    chunk: u32,
    cache: &mut Cache<'_>,
    policy: &mut dyn Policy,
) -> Result<Outcome, NoRoom> {
    let mut lease = look_up(trace, index, cache, policy);
    let path = trace.path(index).len() as u32;
    for depth in (0..path).step_by(chunk as usize).chain([path]) {
        cache.reserve(&mut lease, depth, policy)?;
    }
    Ok(cache.finish(lease, policy))
}

fn step(
    trace: &SmallTrace,
    act: Act,
    next: &mut usize,
    leases: &mut Vec<Lease>,
    cache: &mut Cache<'_>,
    policy: &mut dyn Policy,
) {
    let count = leases.len().max(1);
    match act {
        Act::LookUp if *next < trace.requests.len() => {
            leases.push(look_up(trace, *next, cache, policy));
            *next += 1;
        }
        Act::Serve if *next < trace.requests.len() => {
            trace.serve(*next, cache, policy);
            *next += 1;
        }
        Act::Reserve { lease, blocks } if !leases.is_empty() => {
            let before = cache.used_bytes();
            if cache
                .reserve(&mut leases[lease % count], blocks, policy)
                .is_err()
            {
                assert_eq!(cache.used_bytes(), before, "no room, but something left");
            }
        }
        Act::Finish(lease) if !leases.is_empty() => {
            cache.finish(leases.remove(lease % count), policy);
        }
        Act::Abandon(lease) if !leases.is_empty() => {
            cache.abandon(leases.remove(lease % count), policy);
        }
        _ => (),
    }
}

/// The same path held twice takes its room once, and is computed by one of both.
#[test]
fn what_two_hold_is_counted_once() {
    let trace = SmallTrace::new(&asks(&["abc", "abc"]));
    let mut cache = trace.cache(3, EvictUnit::Block);
    let mut lru = policy("lru", 3);
    let mut one = look_up(&trace, 0, &mut cache, &mut lru);
    let mut two = look_up(&trace, 1, &mut cache, &mut lru);
    cache.reserve(&mut one, 3, &mut lru).unwrap();
    cache.reserve(&mut two, 3, &mut lru).unwrap();
    assert_eq!(cache.usage().pinned_blocks, 3);
    assert_eq!(two.outcome().counters.hit_blocks, 0, "it came before");
    cache.finish(one, &mut lru);
    assert_eq!(cache.usage().pinned_blocks, 3);
    let counters = cache.finish(two, &mut lru).counters;
    assert_eq!((counters.admitted_blocks, counters.evicted_blocks), (0, 0));
    assert_eq!(cache.candidates()[0].uses, 2);
}

/// What an abandoned request brought in is dropped with the last who holds it, unless somebody finished with it.
#[test]
fn who_abandons_leaves_nothing_behind() {
    let trace = SmallTrace::new(&asks(&["abcd", "abx", "ab"]));
    let mut cache = trace.cache(8, EvictUnit::Block);
    let mut lru = policy("lru", 8);
    let mut first = look_up(&trace, 0, &mut cache, &mut lru);
    cache.reserve(&mut first, 4, &mut lru).unwrap();
    let mut second = look_up(&trace, 1, &mut cache, &mut lru);
    cache.reserve(&mut second, 3, &mut lru).unwrap();
    cache.abandon(first, &mut lru);
    assert_eq!(cache.resident_blocks().len(), 3, "c and d left");
    let third = look_up(&trace, 2, &mut cache, &mut lru);
    cache.finish(third, &mut lru);
    cache.abandon(second, &mut lru);
    assert_eq!(cache.resident_blocks(), trace.path(2));
}

/// A state needs its room from the reservation on, and is there once the request has finished.
#[test]
fn a_lease_holds_room_for_its_states() {
    let trace = SmallTrace::new(&[ask("ab"), ask("abc")]);
    let mut cache = trace.cache_of_states(7, 5);
    let mut lru = pair("lru", "all", 1);
    let mut lease = look_up(&trace, 0, &mut cache, &mut lru);
    cache.reserve(&mut lease, 1, &mut lru).unwrap();
    assert_eq!(cache.used_bytes(), 1);
    cache.reserve(&mut lease, 2, &mut lru).unwrap();
    assert_eq!((cache.used_bytes(), cache.saved_states()), (7, vec![]));
    let counters = cache.finish(lease, &mut lru).counters;
    assert_eq!(counters.saved_states, Some(1));
    assert_eq!(cache.saved_states(), [BlockId(1)]);

    let mut next = look_up(&trace, 1, &mut cache, &mut lru);
    assert_eq!(next.outcome().counters.hit_blocks, 2);
    let none = cache.reserve(&mut next, 3, &mut lru).unwrap_err();
    assert_eq!((none.needed_bytes, none.available_bytes), (6, 0));
    cache.abandon(next, &mut lru);
    assert_eq!(cache.used_bytes(), 7);
}

/// A tier below hears of what leaves, with the whole path to it.
#[test]
fn evictions_are_told_with_their_path() {
    let trace = SmallTrace::new(&asks(&["abc", "xy", "pq"]));
    let told = RefCell::new(Vec::new());
    let mut cache = trace.cache(5, EvictUnit::Block);
    cache.on_eviction(|evicted| {
        let blocks = evicted.part.blocks as usize;
        let path = evicted.path.to_vec();
        told.borrow_mut()
            .push((path, blocks, evicted.part.bytes, evicted.reason));
    });
    let mut lru = policy("lru", 5);
    trace.serve(0, &mut cache, &mut lru);
    let mut lease = look_up(&trace, 1, &mut cache, &mut lru);
    cache.reserve(&mut lease, 2, &mut lru).unwrap();
    trace.serve(2, &mut cache, &mut lru);
    cache.abandon(lease, &mut lru);
    let abc = trace.path(0).to_vec();
    assert_eq!(
        *told.borrow(),
        [
            (abc, 2, 2, EvictionReason::Room),
            (trace.path(1).to_vec(), 2, 2, EvictionReason::Abandoned)
        ]
    );
}

/// Where a lease grows over what another request brought in, the node at which it ended is one with the next.
#[test]
fn a_lease_that_grows_ends_nothing_where_it_ended() {
    let trace = SmallTrace::new(&asks(&["abc", "abc"]));
    let mut cache = trace.cache_of_states(5, 2);
    let mut lru = pair("lru", "all", 1);
    let mut lease = look_up(&trace, 0, &mut cache, &mut lru);
    cache.reserve(&mut lease, 1, &mut lru).unwrap();
    trace.serve(1, &mut cache, &mut lru);
    cache.reserve(&mut lease, 2, &mut lru).unwrap();
    assert_eq!(cache.audit(), Ok(()));
    cache.finish(lease, &mut lru);
    assert_eq!(cache.candidates()[0].blocks, 3);
}
