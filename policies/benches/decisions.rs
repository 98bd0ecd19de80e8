//! Nanoseconds per request, cache included, at 1,000 to 100,000 leaves: flat but for a logarithm (known fault 25).
//!
//! `leaves`: every second request is of a new session, the others return to one of the last so many; all sessions of a prefix share
//! eight blocks and have two of their own.
//!
//! `chats`: sessions of one to six turns, each as long as the one before and one to sixteen blocks more, at times that differ by
//! orders of magnitude. Here parents become leaves all the time, and ages, lengths and prices disagree: that is what policies
//! are dear on whose scores change with time. Policies know the prices, so that `marconi` is tuned while the cache warms up.
//!
//! The cache is full all the time.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Cache, CacheConfig, EvictUnit};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use policies::{ADMISSION, EVICTION, PolicyContext};
use policy_api::{BlockId, Pair, PrefillCost, Request, RequestIndex, Work};

const LEAVES: [u64; 3] = [1_000, 10_000, 100_000];
const PREFIXES: u64 = 16;
const PREFIX_BLOCKS: u64 = 8;
const OWN_BLOCKS: u64 = 2;
const PATH_BLOCKS: u64 = PREFIX_BLOCKS + OWN_BLOCKS;

/// A prefill that grows faster than its length, so that depth matters.
struct Quadratic;

impl PrefillCost for Quadratic {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let new_tokens = (total_tokens - cached_tokens) as f64;
        let flops = new_tokens * (1e10 + 5e5 * total_tokens as f64);
        Work {
            seconds: flops / 5e14,
            flops,
        }
    }
}

struct Traffic {
    arena: Vec<BlockId>,
    requests: Vec<Request>,
    distinct_blocks: u32,
    capacity_blocks: u64,
    /// Requests until the cache has been full for a while.
    warm_up: u64,
}

impl Traffic {
    /// Twice as many sessions as leaves, so that half of what returns was evicted.
    fn leaves(leaves: u64) -> Self {
        let sessions = 2 * leaves;
        let path = |session: u64| {
            let prefix = session % PREFIXES;
            let shared = (0..PREFIX_BLOCKS).map(move |block| prefix * PREFIX_BLOCKS + block);
            let own = (0..OWN_BLOCKS)
                .map(move |block| PREFIXES * PREFIX_BLOCKS + session * OWN_BLOCKS + block);
            shared.chain(own).map(|block| BlockId(block as u32))
        };
        let requests = (0..2 * sessions).map(|at| {
            let newest = at / 2;
            let back = if at % 2 == 0 {
                0
            } else {
                at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % sessions
            };
            let session = (newest + sessions - back) % sessions;
            Request {
                request_id: at,
                arrival_us: at as i64 * 1_000,
                session_id: session,
                step: (at % 2) as u32,
                kind: (session % 3) as u16,
                tool: session.is_multiple_of(3).then_some(0),
                prompt_tokens: PATH_BLOCKS as u32 * 16 + 1,
                output_tokens: 100,
                path_start: (session * PATH_BLOCKS) as usize,
                path_blocks: PATH_BLOCKS as u32,
                prompt_blocks: PATH_BLOCKS as u32,
                seen_blocks: PATH_BLOCKS as u32,
                ..Request::default()
            }
        });
        Self {
            arena: (0..sessions).flat_map(path).collect(),
            requests: requests.collect(),
            distinct_blocks: (PREFIXES * PREFIX_BLOCKS + sessions * OWN_BLOCKS) as u32,
            capacity_blocks: PREFIXES * PREFIX_BLOCKS + leaves * OWN_BLOCKS,
            warm_up: 4 * leaves,
        }
    }

    /// Four times as many sessions as are held, a random one of the last so many takes its next turn.
    fn chats(leaves: u64) -> Self {
        const MOST_TURNS: u64 = 6;
        const MOST_TURN_BLOCKS: u64 = 16;
        const MEAN_BLOCKS: u64 = 20;
        let mut state = 1u64;
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut arena, mut requests, mut now_us) = (Vec::new(), Vec::new(), 0);
        let mut open: Vec<(u64, usize, u64, u64)> = Vec::new();
        let mut sessions = 0;
        while sessions < 4 * leaves || !open.is_empty() {
            let place = draw(leaves / 4) as usize;
            if place >= open.len() {
                if sessions == 4 * leaves {
                    open.truncate(open.len() - 1);
                    continue;
                }
                let start = arena.len();
                let longest = MOST_TURNS * MOST_TURN_BLOCKS;
                arena.extend((0..longest).map(|block| BlockId(start as u32 + block as u32)));
                open.push((sessions, start, 0, 1 + draw(MOST_TURNS)));
                sessions += 1;
                continue;
            }
            let (session, start, blocks, turns) = &mut open[place];
            *blocks += 1 + draw(MOST_TURN_BLOCKS);
            *turns -= 1;
            now_us += 1 << draw(22);
            requests.push(Request {
                request_id: requests.len() as u64,
                arrival_us: now_us,
                session_id: *session,
                kind: (*session % 3) as u16,
                prompt_tokens: *blocks as u32 * 16 + 1,
                output_tokens: 100,
                path_start: *start,
                path_blocks: *blocks as u32,
                prompt_blocks: *blocks as u32,
                seen_blocks: *blocks as u32,
                ..Request::default()
            });
            if *turns == 0 {
                open.swap_remove(place);
            }
        }
        Self {
            distinct_blocks: arena.len() as u32,
            arena,
            warm_up: requests.len() as u64 / 2,
            requests,
            capacity_blocks: leaves * MEAN_BLOCKS,
        }
    }
}

/// A cache that has been full for a while.
struct Running<'t> {
    traffic: &'t Traffic,
    cache: Cache<'t>,
    policy: Pair,
    served: u32,
}

impl<'t> Running<'t> {
    fn new(traffic: &'t Traffic, names: (&str, &str)) -> Self {
        let block_bytes = 2 << 20;
        let config = CacheConfig {
            capacity_bytes: traffic.capacity_blocks * block_bytes,
            block_bytes,
            block_tokens: 16,
            evict_unit: EvictUnit::Block,
            state: None,
        };
        let context = PolicyContext {
            cost: Some(Arc::new(Quadratic)),
            ..PolicyContext::new(config, 0)
        };
        let mut running = Self {
            traffic,
            cache: Cache::new(config, &traffic.arena, traffic.distinct_blocks, &Quadratic),
            policy: policies::build(
                &policies::eviction(names.0).expect("registered"),
                &policies::admission(names.1).expect("registered"),
                &context,
            ),
            served: 0,
        };
        for _ in 0..traffic.warm_up {
            running.serve();
        }
        running
    }

    /// The next request; after the last one all come again, as much later as they took.
    fn serve(&mut self) {
        let requests = &self.traffic.requests;
        let (round, at) = (
            self.served as usize / requests.len(),
            self.served as usize % requests.len(),
        );
        let took_us = requests.last().map_or(0, |last| last.arrival_us + 1_000);
        let request = Request {
            arrival_us: requests[at].arrival_us + round as i64 * took_us,
            ..requests[at]
        };
        black_box(
            self.cache
                .serve(RequestIndex(self.served), &request, None, &mut self.policy),
        );
        self.served += 1;
    }
}

fn decisions(criterion: &mut Criterion) {
    let evictions = EVICTION.iter().map(|entry| (entry.name, "all"));
    let admissions = ADMISSION[1..].iter().map(|entry| ("lru", entry.name));
    // Untuned, Marconi is LRU; with a weight its scores change with time.
    let weighted = [("marconi(alpha=1)", "all")];
    let pairs: Vec<_> = evictions.chain(admissions).chain(weighted).collect();
    for leaves in LEAVES {
        measure(criterion, &format!("{leaves} leaves"), &pairs, || {
            Traffic::leaves(leaves)
        });
    }
    for leaves in LEAVES {
        measure(criterion, &format!("{leaves} chats"), &pairs, || {
            Traffic::chats(leaves)
        });
    }
}

fn measure(
    criterion: &mut Criterion,
    name: &str,
    pairs: &[(&str, &str)],
    traffic: impl FnOnce() -> Traffic,
) {
    let traffic = traffic();
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    group.warm_up_time(Duration::from_millis(200));
    group.measurement_time(Duration::from_millis(500));
    for &names in pairs {
        let id = BenchmarkId::from_parameter(format!("{} {}", names.0, names.1));
        let mut running = None;
        group.bench_function(id, |bencher| {
            let running = running.get_or_insert_with(|| Running::new(&traffic, names));
            bencher.iter_custom(|requests| {
                let start = Instant::now();
                for _ in 0..requests {
                    running.serve();
                }
                start.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decisions);
criterion_main!(benches);
