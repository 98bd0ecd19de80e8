//! Models that resume only from saved states: known faults, and the cache against a slow obvious model.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cache::{Cache, CacheConfig, EvictUnit};
use policy_api::{
    AdmissionPolicy, BlockId, Candidate, CandidateKind, EvictionPolicy, Inspect, NodeId, Pair,
    PathInsertion, PolicyCall, PolicyFault, RequestIndex, RequestView, StateBytes, Victim,
    WithdrawReason,
};
use proptest::prelude::*;

use testkit::{FlatCost, SmallTrace, any_asks, ask};

use crate::support::{Offers, but_for_states, pair};

/// Saves states where it is told to, and evicts nothing.
struct SaveAt(Vec<Vec<u32>>);

impl EvictionPolicy for SaveAt {
    fn offer(&mut self, _: &Candidate) {}
    fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
    fn victim(&mut self) -> Option<Victim> {
        None
    }
    fn evicted(&mut self, _: &Candidate, _: bool) {}
}

impl AdmissionPolicy for SaveAt {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.path.len() as u32
    }
    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        _: PathInsertion,
        checkpoint_depths: &mut Vec<u32>,
    ) {
        checkpoint_depths.extend(&self.0[request.index.index()]);
    }
}

/// 11: a split does not make a state. State only at [A B C]; [A B D] matches two blocks and reuses none; once a state is saved at
/// B, [A B E] reuses two.
#[test]
fn case_11_a_split_leaves_the_head_without_a_state() {
    let trace = SmallTrace::new(&[[1, 2, 3], [1, 2, 4], [1, 2, 5]].map(ask));
    let mut cache = trace.cache_of_states(100, 1);
    let mut policy = SaveAt(vec![vec![3], vec![2], vec![]]);
    let outcomes = trace.serve_all(&mut cache, &mut policy);
    let held_and_hit = outcomes
        .iter()
        .map(|o| (o.held_blocks, o.counters.hit_blocks));
    assert_eq!(held_and_hit.collect::<Vec<_>>(), [(0, 0), (2, 0), (2, 2)]);
    assert_eq!(cache.saved_states(), [trace.path(0)[1], trace.path(0)[2]]);
    assert_eq!(cache.first_fault(), None);
}

/// 12: a hit refreshes the state that it consumed, not the chain above. Two sessions of three turns, in turn, four states:
/// both tails survive.
#[test]
fn case_12_a_hit_refreshes_only_what_it_consumed() {
    let turns = [&[1][..], &[5], &[1, 2], &[5, 6], &[1, 2, 3], &[5, 6, 7]];
    let trace = SmallTrace::new(&turns.map(ask));
    // Blocks weigh a thousandth of a state, so that four states and six blocks fit.
    let mut cache = trace.cache_of_states(4 * 1000 + 6, 1000);
    trace.serve_all(&mut cache, &mut pair("lru", "all", 1));
    let states = cache.saved_states();
    let ends = |turn: usize| *trace.path(turn).last().unwrap();
    assert_eq!(states.len(), 4);
    assert!(
        states.contains(&ends(4)) && states.contains(&ends(5)),
        "{states:?}"
    );
    assert!(
        states.contains(&ends(2)) && states.contains(&ends(3)),
        "{states:?}"
    );
}

/// A state goes before what hangs below it, and what hung below it takes in its blocks.
#[test]
fn a_state_with_one_child_goes_alone() {
    let trace = SmallTrace::new(&[ask([1]), ask([1, 2]), ask([3]), ask([1, 2, 4])]);
    let mut cache = trace.cache_of_states(23, 10);
    let mut lru = pair("lru", "all", 1);
    for index in 0..3 {
        trace.serve(index, &mut cache, &mut lru);
    }
    // Of three states the one at [1] was used last at request 1, as [1 2] was, but is less deep.
    assert_eq!(cache.saved_states(), [trace.path(0)[0], trace.path(2)[0]]);
    assert_eq!(cache.used_bytes(), 22);
    assert_eq!(trace.serve(3, &mut cache, &mut lru).counters.hit_blocks, 1);
}

#[test]
fn wrong_places_for_states_are_faults_or_passed_over() {
    let trace = SmallTrace::new(&[ask([1, 2, 3]), ask([1, 2, 3])]);
    let mut cache = trace.cache_of_states(100, 1);
    let mut policy = SaveAt(vec![vec![0, 2, 2, 7], vec![1, 3]]);
    let outcomes = trace.serve_all(&mut cache, &mut policy);
    let fault = PolicyFault::CheckpointOutOfRange { blocks: 7, path: 3 };
    assert_eq!(cache.first_fault(), Some((RequestIndex(0), fault)));
    // The second request resumes from block 2, so it cannot save at block 1.
    assert_eq!(outcomes[1].counters.hit_blocks, 2);
    assert_eq!(cache.saved_states(), trace.path(0)[1..]);
}

/// One checkpoint of the 7B hybrid weighs 408.75 tokens of KV, and a prompt of 10,000 tokens with one every 16 tokens 17.4 GB.
#[test]
fn a_prompt_full_of_checkpoints() {
    const STATE_BYTES: u64 = 26_787_840;
    const KV_BYTES_PER_TOKEN: u64 = 65_536;
    assert_eq!(STATE_BYTES as f64 / KV_BYTES_PER_TOKEN as f64, 408.75);
    let labels: Vec<u32> = (0..10_000 / 16).collect();
    let trace = SmallTrace::of_blocks(16, &[ask(&labels)]);
    let config = CacheConfig {
        capacity_bytes: 20_000_000_000,
        block_bytes: 16 * KV_BYTES_PER_TOKEN,
        block_tokens: 16,
        evict_unit: EvictUnit::Block,
        state: Some(StateBytes {
            fixed: STATE_BYTES,
            ..StateBytes::default()
        }),
    };
    let mut cache = Cache::new(config, &trace.arena, trace.distinct_blocks(), &FlatCost);
    trace.serve_all(
        &mut cache,
        &mut pair("vllm+", "checkpoint-every(tokens=1)", 1),
    );
    assert_eq!(cache.saved_states().len(), 625);
    assert_eq!(
        cache.used_bytes(),
        625 * STATE_BYTES + 10_000 * KV_BYTES_PER_TOKEN
    );
    assert!((cache.used_bytes() as f64 / 1e9 - 17.4).abs() < 0.05);
}

/// Where the second path parts from the first a state is saved, and what goes on below resumes from there.
#[test]
fn what_is_cut_off_is_offered_with_the_state_above_it() {
    let trace = SmallTrace::new(&[ask([1, 2, 3, 4]), ask([1, 2, 5])]);
    let mut cache = trace.cache_of_states(100, 1);
    let mut offers = Offers::default();
    let lru = pair("lru", "marconi", 1);
    trace.serve_all(
        &mut cache,
        &mut Inspect::new(lru, |_: &mut Pair, call: PolicyCall<'_>| offers.note(call)),
    );
    for leaf in [trace.path(0)[3], trace.path(1)[2]] {
        let leaf = offers.of(leaf).expect("a leaf");
        assert_eq!(leaf.base_blocks, 2);
        assert_eq!(leaf.recompute.seconds, f64::from(leaf.blocks));
    }
}

/// The definition, a block at a time, under LRU.
struct Naive {
    capacity_bytes: usize,
    state_bytes: usize,
    marconi: bool,
    /// Resident blocks, with the block above and the depth.
    resident: BTreeMap<BlockId, (Option<BlockId>, usize)>,
    /// Blocks at whose end a state is saved: created, last used.
    states: BTreeMap<BlockId, (u32, u32)>,
}

impl Naive {
    fn children(&self, block: BlockId) -> usize {
        let above = |(parent, _): &&(Option<BlockId>, usize)| *parent == Some(block);
        self.resident.values().filter(above).count()
    }

    /// Nothing is saved there, nothing parts, and the path goes on.
    fn is_inside_run(&self, block: BlockId) -> bool {
        !self.states.contains_key(&block) && self.children(block) == 1
    }

    fn run_of(&self, last: BlockId) -> Vec<BlockId> {
        let mut node = vec![last];
        while let Some(above) = self.resident[node.last().unwrap()].0
            && self.is_inside_run(above)
        {
            node.push(above);
        }
        node
    }

    fn serve(&mut self, trace: &SmallTrace, index: usize) -> u32 {
        let (path, now) = (trace.path(index), index as u32);
        let request = &trace.requests[index];
        let usable = (request.prompt_tokens.saturating_sub(1) / trace.block_tokens) as usize;
        let held = path
            .iter()
            .take_while(|block| self.resident.contains_key(block))
            .count();
        let hit = (1..=held.min(usable))
            .rev()
            .find(|end| self.states.contains_key(&path[end - 1]));
        let hit = hit.unwrap_or(0);
        if hit > 0 {
            self.states.get_mut(&path[hit - 1]).unwrap().1 = now;
        }
        let parts_inside = held > 0 && self.is_inside_run(path[held - 1]);
        let mut checkpoint_depths = vec![path.len()];
        if parts_inside {
            checkpoint_depths.push(held);
        }
        if !self.marconi {
            checkpoint_depths.push(request.prompt_blocks as usize);
        }
        for (depth, block) in path.iter().enumerate() {
            let above = depth.checked_sub(1).map(|above| path[above]);
            self.resident.insert(*block, (above, depth));
        }
        for end in checkpoint_depths.into_iter().filter(|end| *end > hit) {
            self.states.entry(path[end - 1]).or_insert((now, now)).1 = now;
        }
        while self.resident.len() + self.states.len() * self.state_bytes > self.capacity_bytes {
            self.evict();
        }
        hit as u32
    }

    fn evict(&mut self) {
        let may_go = self
            .states
            .iter()
            .filter(|(block, _)| self.children(**block) <= 1);
        let key = |(block, (created, used)): &(&BlockId, &(u32, u32))| {
            let first = *self.run_of(**block).last().unwrap();
            (*used, Reverse(self.resident[&first].1), *created)
        };
        let victim = *may_go.min_by_key(key).expect("every leaf has a state").0;
        if self.children(victim) == 0 {
            for block in self.run_of(victim) {
                self.resident.remove(&block);
            }
        }
        self.states.remove(&victim);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn hits_blocks_and_states_are_those_of_the_model(
        asks in any_asks(),
        capacity in 0usize..40,
        state_bytes in 0usize..6,
        marconi in any::<bool>(),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache_of_states(capacity as u64, state_bytes as u64);
        let mut policy = pair("lru", if marconi { "marconi" } else { "all" }, 1);
        let mut naive = Naive {
            capacity_bytes: capacity,
            state_bytes,
            marconi,
            resident: BTreeMap::new(),
            states: BTreeMap::new(),
        };
        for index in 0..trace.requests.len() {
            let outcome = trace.serve(index, &mut cache, &mut policy);
            prop_assert_eq!(outcome.counters.hit_blocks, u64::from(naive.serve(&trace, index)), "request {}", index);
            let resident: Vec<_> = naive.resident.keys().copied().collect();
            prop_assert_eq!(cache.resident_blocks(), resident, "after request {}", index);
            let states: Vec<_> = naive.states.keys().copied().collect();
            prop_assert_eq!(cache.saved_states(), states, "after request {}", index);
            prop_assert_eq!(cache.audit(), Ok(()));
        }
        prop_assert_eq!(cache.first_fault(), None);
    }

    /// Pins come and go; what is pinned stays.
    #[test]
    fn pinned_paths_stay_with_their_states(
        asks in any_asks(),
        capacity in 8u64..40,
        pins in prop::collection::vec(any::<bool>(), 40),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache_of_states(capacity, 3);
        let mut policy = pair("lru", "marconi", 1);
        let mut pinned: Vec<(&[BlockId], u32, cache::Pin)> = Vec::new();
        for (index, pin) in (0..trace.requests.len()).zip(pins) {
            trace.serve(index, &mut cache, &mut policy);
            prop_assert_eq!(cache.audit(), Ok(()));
            for (path, held, _) in &pinned {
                prop_assert!(cache.held_blocks(path) >= *held, "a pinned block went");
            }
            if pin && pinned.len() < 2 {
                let path = trace.path(index);
                let held = cache.held_blocks(path);
                pinned.push((path, held, cache.pin(path, &mut policy)));
            } else if let Some((_, _, pin)) = pinned.pop() {
                cache.unpin(pin, &mut policy);
            }
            prop_assert_eq!(cache.audit(), Ok(()));
        }
        prop_assert_eq!(cache.first_fault(), None);
    }

    /// A policy that writes down what it is offered knows what the cache would offer, but for states that came or went above.
    #[test]
    fn offers_are_what_may_go(
        asks in any_asks(),
        capacity in 0u64..40,
        admission in prop::sample::select(vec!["all", "marconi", "checkpoint-every(tokens=1)"]),
    ) {
        let trace = SmallTrace::of_blocks(4, &asks);
        let mut cache = trace.cache_of_states(capacity, 2);
        let mut lru = pair("lru", admission, 1);
        let mut offers = Offers::default();
        for index in 0..trace.requests.len() {
            let mut lru = Inspect::new(&mut lru, |_, call| offers.note(call));
            trace.serve(index, &mut cache, &mut lru);
            let may_go = but_for_states(&cache.candidates());
            prop_assert_eq!(offers.all(), may_go, "after request {}", index);
        }
    }

    /// Whatever a policy answers, the cache fits and its tree is whole.
    #[test]
    fn no_answer_breaks_the_cache(
        asks in any_asks(),
        capacity in 0u64..20,
        victims in prop::collection::vec(prop::option::of(0u32..12), 1..20),
        checkpoint_depths in prop::collection::vec(prop::collection::vec(0u32..9, 0..4), 40),
    ) {
        let trace = SmallTrace::of_blocks(2, &asks);
        let mut cache = trace.cache_of_states(capacity, 2);
        let mut policy = Wild { victims, checkpoint_depths, asked: 0 };
        for index in 0..trace.requests.len() {
            trace.serve(index, &mut cache, &mut policy);
            prop_assert_eq!(cache.audit(), Ok(()));
        }
    }
}

/// Answers with whatever it was told to.
struct Wild {
    victims: Vec<Option<u32>>,
    checkpoint_depths: Vec<Vec<u32>>,
    asked: usize,
}

impl EvictionPolicy for Wild {
    fn offer(&mut self, candidate: &Candidate) {
        assert!(candidate.base_blocks <= candidate.depth_blocks);
        assert!(candidate.kind == CandidateKind::Leaf || candidate.bytes == 2);
    }
    fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
    fn victim(&mut self) -> Option<Victim> {
        self.asked += 1;
        let id = self.victims[self.asked % self.victims.len()]?;
        Some(Victim::node(NodeId(id)))
    }
    fn evicted(&mut self, _: &Candidate, _: bool) {}
}

impl AdmissionPolicy for Wild {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        let path = request.path.len() as u32;
        path.saturating_sub(self.asked as u32 % 3)
            .max(request.held_blocks)
    }
    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        _: PathInsertion,
        checkpoint_depths: &mut Vec<u32>,
    ) {
        checkpoint_depths
            .extend(&self.checkpoint_depths[request.index.index() % self.checkpoint_depths.len()]);
    }
}

#[test]
fn asks_may_end_anywhere() {
    let trace = SmallTrace::of_blocks(4, &[ask([]).aligned()]);
    let mut cache = trace.cache_of_states(0, 1);
    let outcome = trace.serve(0, &mut cache, &mut pair("marconi", "marconi", 1));
    assert_eq!(
        (outcome.counters.hit_blocks, outcome.counters.saved_states),
        (0, Some(0))
    );
    assert_eq!(cache.first_fault(), None);
}
