//! What holds for every policy on any trace.

use cache::{Cache, CacheConfig, EvictUnit, Lease};
use policy_api::{
    BlockId, EvictionPolicy, Hints, Inspect, Pair, Policy, PolicyCall, RequestIndex, StateBytes,
};
use proptest::prelude::*;

use crate::under_test::{admissions, evictions, pair, pair_for};
use testkit::{Ask, SmallTrace as Trace, ask, asks, config};

/// Paths over a small alphabet, so that they share, extend and diverge often, with all that a policy may read.
fn any_ask() -> impl Strategy<Value = Ask> {
    let hints = (0u32..100, 0u64..20_000_000, 0u32..3, 0u32..4);
    let facts = (
        0u64..4,
        0u32..4,
        0u16..3,
        prop::option::of(0u16..2),
        0u32..3,
    );
    ("[abc]{0,7}", facts, prop::option::of(hints)).prop_map(|(path, facts, hints)| {
        let (session, step, kind, tool, output_tokens) = facts;
        let mut ask = ask(&path)
            .session(session, step)
            .kind(kind)
            .output_tokens(output_tokens);
        if let Some(tool) = tool {
            ask = ask.tool(tool);
        }
        if let Some((priority, ttl_us, remaining_uses, steps)) = hints {
            ask = ask.hints(Hints {
                priority: Some(priority),
                priority_ttl_us: Some(ttl_us),
                remaining_uses: Some(remaining_uses),
                steps_to_next: Some(steps),
                ..Hints::default()
            });
        }
        ask
    })
}

/// Requests in order of time, some at the same.
fn any_trace(most: usize) -> impl Strategy<Value = Trace> {
    prop::collection::vec((any_ask(), 0u32..4), 1..most).prop_map(|asks| {
        let mut at_s = 0.0;
        let asks: Vec<_> = asks
            .into_iter()
            .map(|(ask, gap)| {
                at_s += f64::from(gap * gap);
                ask.at_seconds(at_s)
            })
            .collect();
        Trace::new(&asks)
    })
}

/// Capacities of nothing, of less than a path, and of several.
const CAPACITIES: [u64; 5] = [0, 1, 3, 8, 20];

/// Serves the trace and checks after every request what must always hold. Returns what happened.
fn serve(
    trace: &Trace,
    capacity: u64,
    unit: EvictUnit,
    policy: &mut dyn Policy,
    name: &str,
) -> Vec<(u64, Vec<BlockId>)> {
    serve_in(trace, config(capacity, unit, None), policy, name)
}

/// The same in a cache of any shape.
fn serve_in(
    trace: &Trace,
    config: CacheConfig,
    policy: &mut dyn Policy,
    name: &str,
) -> Vec<(u64, Vec<BlockId>)> {
    let mut cache = trace.cache_of(config);
    let happened = (0..trace.requests.len())
        .map(|index| {
            let outcome = trace.serve(index, &mut cache, policy);
            assert_eq!(cache.audit(), Ok(()), "{name}");
            let (used, most) = (cache.used_bytes(), config.capacity_bytes);
            assert!(used <= most, "{name} holds {used} of {most}");
            (outcome.counters.hit_blocks, cache.resident_blocks())
        })
        .collect();
    assert_eq!(cache.first_fault(), None, "{name} in {config:?}");
    happened
}

/// A pair that is asked for a victim at every turn, whether anybody wants to know or not.
fn asking(pair: Pair) -> impl Policy {
    Inspect::new(pair, |pair: &mut Pair, _: PolicyCall<'_>| {
        let first = pair.victim();
        assert_eq!(pair.victim(), first, "asked twice");
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// No fault, never too full, never a child without its parent (9), for every pair.
    #[test]
    fn every_pair_serves_any_trace(trace in any_trace(40)) {
        for eviction in evictions() {
            for admission in admissions() {
                for capacity in CAPACITIES {
                    let name = format!("{eviction} with {admission}");
                    let mut policy = pair(&eviction, &admission, capacity);
                    serve(&trace, capacity, EvictUnit::Block, &mut policy, &name);
                }
            }
        }
    }

    /// The same where whole leaves go.
    #[test]
    fn every_policy_serves_any_trace_by_leaves(trace in any_trace(40)) {
        for eviction in evictions() {
            for unit in [EvictUnit::Leaf, EvictUnit::LeafSglang] {
                for capacity in CAPACITIES {
                    let mut policy = pair(&eviction, "all", capacity);
                    serve(&trace, capacity, unit, &mut policy, &eviction);
                }
            }
        }
    }

    /// The same where a model resumes only from saved states, which weigh as much as three blocks, or depend on the depth.
    #[test]
    fn every_pair_serves_any_trace_with_states(trace in any_trace(40), window_tokens in 0u64..4) {
        let state = StateBytes { fixed: 3, per_token: 1, window_tokens };
        for eviction in evictions() {
            for admission in admissions() {
                for capacity in [0, 4, 12, 40] {
                    let name = format!("{eviction} with {admission}");
                    let config = config(capacity, EvictUnit::Block, Some(state));
                    let quiet = serve_in(&trace, config, &mut pair_for(&eviction, &admission, config), &name);
                    let mut asking = asking(pair_for(&eviction, &admission, config));
                    prop_assert_eq!(quiet, serve_in(&trace, config, &mut asking, &name), "{}", name);
                }
            }
        }
    }

    /// 23: to be asked for a victim changes nothing, at any moment.
    #[test]
    fn asking_changes_nothing(trace in any_trace(60)) {
        for eviction in evictions() {
            for admission in ["all", "tinylfu"] {
                for capacity in [3, 8] {
                    let quiet = serve(&trace, capacity, EvictUnit::Block, &mut pair(&eviction, admission, capacity), &eviction);
                    let mut asking = asking(pair(&eviction, admission, capacity));
                    let asked = serve(&trace, capacity, EvictUnit::Block, &mut asking, &eviction);
                    prop_assert_eq!(quiet, asked, "{} with {}", eviction, admission);
                }
            }
        }
    }

    /// The same twice over, and in several threads at once.
    #[test]
    fn the_same_trace_gives_the_same_result_in_any_thread(trace in any_trace(60)) {
        let pairs: Vec<_> = evictions()
            .into_iter()
            .flat_map(|eviction| admissions().into_iter().map(move |admission| (eviction.clone(), admission)))
            .collect();
        let node = |pairs: &[(String, String)]| -> Vec<_> {
            pairs
                .iter()
                .map(|(eviction, admission)| {
                    serve(&trace, 5, EvictUnit::Block, &mut pair(eviction, admission, 5), eviction)
                })
                .collect()
        };
        let one = node(&pairs);
        let many = std::thread::scope(|scope| {
            let threads: Vec<_> = pairs
                .chunks(pairs.len().div_ceil(4))
                .map(|chunk| scope.spawn(move || node(chunk)))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        prop_assert!(one == many);
    }

    /// A policy that joins a warm cache knows nothing of the past, and is offered what may go.
    #[test]
    fn a_policy_may_join_a_warm_cache(trace in any_trace(60)) {
        let half = trace.requests.len() / 2;
        for eviction in evictions() {
            let mut cache = trace.cache(8, EvictUnit::Block);
            let mut before = pair("lru", "all", 8);
            for index in 0..half {
                trace.serve(index, &mut cache, &mut before);
            }
            let mut after = pair(&eviction, "all", 8);
            for candidate in cache.candidates() {
                after.offer(&candidate);
            }
            for index in half..trace.requests.len() {
                trace.serve(index, &mut cache, &mut after);
            }
            prop_assert_eq!(cache.first_fault(), None, "{}", eviction);
        }
    }

    /// Pins come and go: what is pinned is not evictable, and a policy does not name it.
    #[test]
    fn a_policy_respects_pins(trace in any_trace(40), pins in prop::collection::vec(any::<bool>(), 40)) {
        for eviction in evictions() {
            let mut cache = trace.cache(12, EvictUnit::Block);
            let mut policy = pair(&eviction, "all", 12);
            let mut held = Vec::new();
            for (index, pin) in (0..trace.requests.len()).zip(&pins) {
                trace.serve(index, &mut cache, &mut policy);
                if *pin && held.is_empty() {
                    held.push(cache.pin(trace.path(index), &mut policy));
                } else if let Some(pin) = held.pop() {
                    cache.unpin(pin, &mut policy);
                }
            }
            prop_assert_eq!(cache.first_fault(), None, "{}", eviction);
        }
    }

    /// Requests overlap, end in another order than they began in, or are abandoned.
    #[test]
    fn every_pair_serves_requests_that_overlap(
        trace in any_trace(40),
        turns in prop::collection::vec((0usize..3, any::<bool>()), 40),
        has_states in any::<bool>(),
    ) {
        let state = StateBytes { fixed: 3, ..StateBytes::default() };
        let config = config(16, EvictUnit::Block, has_states.then_some(state));
        for eviction in evictions() {
            for admission in admissions() {
                let mut policy = pair_for(&eviction, &admission, config);
                let cache = overlap(&trace, &turns, config, &mut policy);
                prop_assert_eq!(cache.audit(), Ok(()));
                prop_assert_eq!(cache.usage().pinned_blocks, 0);
                prop_assert_eq!(cache.first_fault(), None, "{} with {}", eviction, admission);
            }
        }
    }
}

/// Up to three requests are under way at a time. A turn says which of them ends before the next begins, and whether it ran.
fn overlap<'t>(
    trace: &'t Trace,
    turns: &[(usize, bool)],
    config: CacheConfig,
    policy: &mut dyn Policy,
) -> Cache<'t> {
    let mut cache = trace.cache_of(config);
    let mut under_way: Vec<Lease> = Vec::new();
    let last = trace.requests.len();
    for (index, &(which, ran)) in turns.iter().enumerate() {
        if under_way.len() == 3 || index >= last && !under_way.is_empty() {
            let lease = under_way.remove(which % under_way.len());
            if ran {
                cache.finish(lease, policy);
            } else {
                cache.abandon(lease, policy);
            }
        }
        if let Some(request) = trace.requests.get(index) {
            let name = RequestIndex(index as u32);
            let mut lease = cache.lookup(name, request, trace.hints(index), policy);
            // Where there is no room it runs without the rest of its path.
            for depth in 1..=request.path_blocks {
                let _ = cache.reserve(&mut lease, depth, policy);
            }
            under_way.push(lease);
        }
    }
    for lease in under_way {
        cache.finish(lease, policy);
    }
    cache
}

/// Policies that see touches and shares of the cache only, so that what they do scales exactly. Whoever counts blocks or tokens on
/// purpose is not here: `arc`, whose target is rounded to blocks, `w-tinylfu`, `lmcache-cost`, `tail-lru`, `lpc-like`,
/// `learned` and `sae`.
const SCALES: &str = "lru fifo filo mru lfu slru priority random depth-lru size vllm clock sieve s3-fifo 2q lru-k lirs gdsf lhd \
    lecar cost-aware cost-aware(p=recency) cost-aware(p=frequency) cost-aware(p=kind) cost-aware(p=session) kvcache-wild \
    pgdsf kvflow continuum parrot marconi sglang+ vllm+";

/// 24: a request is one touch of a node, however many blocks the node has. So a trace whose every block is three blocks long
/// hits the same at three times the capacity.
#[test]
fn case_24_a_request_is_one_touch() {
    let letters: Vec<char> = ('a'..='z').collect();
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let paths: Vec<String> = (0..600)
        .map(|_| {
            let root = letters[(draw(5) * draw(5)) as usize];
            let tail = (0..draw(12)).map(|_| letters[draw(3) as usize]);
            std::iter::once(root).chain(tail).collect()
        })
        .collect();
    let tripled = |path: &String| {
        path.chars()
            .flat_map(|letter| [letter; 3])
            .collect::<String>()
    };
    let single = Trace::new(&asks(&paths));
    let triple = Trace::new(&asks(&paths.iter().map(tripled).collect::<Vec<_>>()));
    for eviction in SCALES.split_whitespace() {
        let hits = |trace: &Trace, capacity: u64| -> Vec<u64> {
            let mut policy = pair(eviction, "all", capacity);
            serve(trace, capacity, EvictUnit::Block, &mut policy, eviction)
                .into_iter()
                .map(|(hits, _)| hits)
                .collect()
        };
        let expected: Vec<u64> = hits(&single, 100)
            .into_iter()
            .map(|hits| 3 * hits)
            .collect();
        assert!(expected.iter().any(|hits| *hits > 0));
        assert_eq!(hits(&triple, 300), expected, "{eviction}");
    }
}
