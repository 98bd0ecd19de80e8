//! Nanoseconds a request, cache included, at 1,000 to 100,000 leaves: flat but for a logarithm (known fault 25).
//!
//! Every second request is of a new session, the others return to one of the last so many; all sessions of a prefix share
//! eight blocks and have two of their own. The cache is full all the time.

use std::hint::black_box;
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
}

impl Traffic {
    /// Twice as many sessions as leaves, so that half of what returns was evicted.
    fn new(leaves: u64) -> Self {
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
    fn new(traffic: &'t Traffic, leaves: u64, names: (&str, &str)) -> Self {
        let capacity_blocks = PREFIXES * PREFIX_BLOCKS + leaves * OWN_BLOCKS;
        let block_bytes = 2 << 20;
        let config = CacheConfig {
            capacity_bytes: capacity_blocks * block_bytes,
            block_bytes,
            block_tokens: 16,
            evict_unit: EvictUnit::Block,
            state: None,
        };
        let context = PolicyContext::new(config, 0);
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
        for _ in 0..4 * leaves {
            running.serve();
        }
        running
    }

    /// A request every millisecond.
    fn serve(&mut self) {
        let at = self.served as usize % self.traffic.requests.len();
        let request = Request {
            arrival_us: i64::from(self.served) * 1_000,
            ..self.traffic.requests[at]
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
        let traffic = Traffic::new(leaves);
        let mut group = criterion.benchmark_group(format!("{leaves} leaves"));
        group.sample_size(10);
        group.warm_up_time(Duration::from_millis(200));
        group.measurement_time(Duration::from_millis(500));
        for &names in &pairs {
            let id = BenchmarkId::from_parameter(format!("{} {}", names.0, names.1));
            let mut running = None;
            group.bench_function(id, |bencher| {
                let running = running.get_or_insert_with(|| Running::new(&traffic, leaves, names));
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
}

criterion_group!(benches, decisions);
criterion_main!(benches);
