//! The trap of recency, and its mirror.
//!
//! Sixteen prefixes of 512 tokens are used once a second, rest for ten minutes and come back. In the meantime one document of 8,192
//! tokens passes through a cache that holds 8,192: LRU throws out what was used hundreds of times for what is never used again.
//! In the mirror it is LRU that is right: the sixteen are over for good, and others take their place.
//!
//! `cost-aware` starts as LRU and has only what it saw to go by, so it has to have seen that documents pass and that the
//! sixteen rest: before the trap a few thousand documents came, each once, and the sixteen rested once with nobody else around.

use cache::{Cache, CacheConfig, EvictUnit, Replay};
use policy_api::{BlockId, PrefillCost, Request, Work};

use crate::under_test::pair_for;

const BLOCK_TOKENS: u64 = 64;
const BLOCK_BYTES: u64 = 64 * 524_288;
const PREFIX_TOKENS: u64 = 512;
const DOCUMENT_TOKENS: u64 = 8_192;
const PREFIXES: usize = 16;
const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;

/// The course's: (2N*s + 4*L*d*s*S)/F for 6.74e9 parameters, 32 layers of 4,096, and half of 989 TFLOP/s.
struct Course;

impl PrefillCost for Course {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let (total, new) = (total_tokens as f64, (total_tokens - cached_tokens) as f64);
        let flops = 2.0 * 6.74e9 * new + 4.0 * 32.0 * 4096.0 * new * total;
        Work {
            seconds: flops / 494.5e12,
            flops,
        }
    }
}

/// Where a text lies in the arena of blocks, and whether it was sent before.
#[derive(Clone)]
struct Text {
    start: usize,
    blocks: u32,
    is_known: bool,
}

/// Requests in the order of their arrival, each a text and one token more.
#[derive(Default)]
struct Traffic {
    arena: Vec<BlockId>,
    requests: Vec<Request>,
    now_us: i64,
}

impl Traffic {
    fn text(&mut self, tokens: u64) -> Text {
        let start = self.arena.len();
        let blocks = (tokens / BLOCK_TOKENS) as u32;
        let ids = start as u32..start as u32 + blocks;
        self.arena.extend(ids.map(BlockId));
        Text {
            start,
            blocks,
            is_known: false,
        }
    }

    fn working_set(&mut self) -> Vec<Text> {
        (0..PREFIXES).map(|_| self.text(PREFIX_TOKENS)).collect()
    }

    fn send(&mut self, text: &mut Text) {
        let seen_blocks = if text.is_known { text.blocks } else { 0 };
        text.is_known = true;
        self.requests.push(Request {
            request_id: self.requests.len() as u64,
            session_id: text.start as u64,
            arrival_us: self.now_us,
            prompt_tokens: text.blocks * BLOCK_TOKENS as u32 + 1,
            path_start: text.start,
            path_blocks: text.blocks,
            prompt_blocks: text.blocks,
            seen_blocks,
            ..Request::default()
        });
    }

    fn document(&mut self) {
        let mut document = self.text(DOCUMENT_TOKENS);
        self.send(&mut document);
    }

    /// A minute in which each of the set is used once a second.
    fn busy_minute(&mut self, set: &mut [Text]) {
        for _ in 0..60 {
            set.iter_mut().for_each(|text| self.send(text));
            self.now_us += SECOND_US;
        }
    }

    /// Documents that come once, and a set that rests and comes back; then it is busy again.
    fn past(&mut self) -> Vec<Text> {
        for _ in 0..4_000 {
            self.document();
            self.now_us += SECOND_US;
        }
        let mut set = self.working_set();
        self.busy_minute(&mut set);
        self.now_us += 10 * MINUTE_US;
        self.busy_minute(&mut set);
        set
    }

    /// Hit tokens of the requests from `first` on.
    fn hit_tokens(&self, policy: &str, first: usize) -> u64 {
        let capacity_blocks = PREFIXES as u64 * PREFIX_TOKENS / BLOCK_TOKENS;
        let config = CacheConfig {
            capacity_bytes: capacity_blocks * BLOCK_BYTES,
            block_bytes: BLOCK_BYTES,
            block_tokens: BLOCK_TOKENS as u32,
            evict_unit: EvictUnit::Block,
            state: None,
        };
        let mut pair = pair_for(policy, "all", config);
        let mut cache = Cache::new(config, &self.arena, self.arena.len() as u32, &Course);
        let mut hit_tokens = 0;
        let requests = Replay::without_hints(&self.requests);
        cache.replay(requests, &mut pair, |served| {
            if served.index.index() >= first {
                hit_tokens += served.outcome.counters.hit_blocks * BLOCK_TOKENS;
            }
        });
        hit_tokens
    }
}

#[test]
fn what_rests_outlives_a_document_that_passes() {
    let mut traffic = Traffic::default();
    let mut set = traffic.past();
    traffic.now_us += 7 * MINUTE_US;
    traffic.document();
    traffic.now_us += 3 * MINUTE_US;
    let back = traffic.requests.len();
    set.iter_mut().for_each(|text| traffic.send(text));
    assert_eq!(traffic.hit_tokens("lru", back), 0);
    let whole_set = PREFIXES as u64 * PREFIX_TOKENS;
    assert_eq!(traffic.hit_tokens("cost-aware", back), whole_set);
}

/// The trap in its plainest form: nothing came before, so nothing tells that documents pass. Who counts the uses of each
/// prefix knows enough all the same.
#[test]
fn without_a_past_the_count_of_uses_tells() {
    let mut traffic = Traffic::default();
    let mut set = traffic.working_set();
    traffic.busy_minute(&mut set);
    traffic.now_us += 7 * MINUTE_US;
    traffic.document();
    traffic.now_us += 3 * MINUTE_US;
    let back = traffic.requests.len();
    set.iter_mut().for_each(|text| traffic.send(text));
    let whole_set = PREFIXES as u64 * PREFIX_TOKENS;
    let hit_tokens = |policy| traffic.hit_tokens(policy, back);
    assert_eq!(hit_tokens("lru"), 0);
    assert_eq!(hit_tokens("cost-aware(p=frequency)"), whole_set);
    // All that the classes have seen so far came back within a second, so the document is expected to.
    assert_eq!(hit_tokens("cost-aware"), 0);
}

#[test]
fn what_is_over_does_not_outlive_those_that_take_its_place() {
    let mut traffic = Traffic::default();
    let _over = traffic.past();
    let moved_on = traffic.requests.len();
    for _ in 0..10 {
        let mut set = traffic.working_set();
        traffic.busy_minute(&mut set);
    }
    // All but the first use of each.
    let round = PREFIXES as u64 * PREFIX_TOKENS;
    let lru = traffic.hit_tokens("lru", moved_on);
    assert_eq!(lru, 10 * 59 * round);
    // The set before was used a second ago each time, so it is given one more second at most.
    assert!(traffic.hit_tokens("cost-aware", moved_on) >= lru - 10 * round);
}
