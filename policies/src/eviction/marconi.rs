//! Recency and the FLOPs that a byte saves, weighed by what would have been best.
//!
//! The paper's rule, from which its published artifact differs. Candidates are nodes with at most one child: a leaf is evicted with its
//! state and its KV, a node with one child loses only its state. The smallest
//!
//! `U = norm(1 / age) + alpha * norm(FLOPs saved beyond the state above / bytes freed)`
//!
//! is evicted, where `age` counts requests since the last use, the present one included, and `norm` maps the values of the present
//! candidates to 0..1 (all to 1 where they are equal). `alpha` is tuned once:
//!
//! ```text
//!   requests   |---- before the first eviction ----|---------- window, five times as many ----------|
//!              alpha 0: LRU                                                                          the best alpha
//!                                                   replayed under each of 0, 0.1, ... 2.0; FLOPs saved here are compared
//! ```
//!
//! Nothing was evicted before the window, so replaying the requests before it rebuilds the cache as it stood. The replays save
//! states as `marconi` admission does. They evict blocks, not whole leaves, where KV is per token.
//!
//! Every score changes with every request, and with the candidates that it is normalised over, but never falls with the time of
//! last use or with what is saved per byte: so both orders are walked until the least is certain, which is exact
//! (`parts::two_orders`).

use cache::{Cache, CacheConfig, EvictUnit, Replay, SharedCost};
use policy_api::{
    BlockId, Candidate, EvictionPolicy, NodeId, Pair, Request, RequestView, Tick, Victim,
    WithdrawReason,
};

use crate::admission::marconi::MarconiAdmission;
use crate::entry::{BuildEviction, EvictionEntry, PolicyContext, Track};
use crate::parts::density::bytes;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::two_orders::TwoOrders;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "marconi",
    summary: "evicts the smallest recency plus alpha times FLOPs saved per byte; alpha tuned once on the first window",
    source: "Pan et al., Marconi: prefix caching for the era of hybrid LLMs, MLSys 2025",
    idea: "A state deep in a long prefix saves more FLOPs per byte than one near the root. How much that should count against \
           recency depends on the traffic, so it is found by replaying some of it.",
    cost: "O(log candidates) per offer; per victim a walk of what is old or saves little, mostly a handful, at worst all; once, 21 \
           replays of a window, whose paths are kept until then, 4 bytes per block",
    avoid_when: "KV is per token: FLOPs per byte hardly differ",
    params: &[Param {
        name: "alpha",
        default: "tuned",
        domain: Domain::NumberOr(0.0, 100.0, "tuned"),
        help: "weight of FLOPs per byte against recency; tuned: found once, after the first window",
    }],
    track: Track::Online,
    build: BuildEviction::With("marconi", |context, params| {
        Box::new(match params.number_or_word("alpha") {
            Some(alpha) => MarconiEviction::new(alpha, None),
            None => MarconiEviction::new(0.0, Tuner::new(context)),
        })
    }),
};

/// Requests of the window per request before the first eviction.
const WINDOW: usize = 5;
/// `alpha` is tried from 0 up in so many steps of a tenth.
const TENTHS: u32 = 20;

struct MarconiEviction {
    alpha: f64,
    now: Tick,
    /// By last use and FLOPs per byte.
    candidates: TwoOrders<LruOrder>,
    tuner: Option<Tuner>,
}

impl MarconiEviction {
    fn new(alpha: f64, tuner: Option<Tuner>) -> Self {
        Self {
            alpha,
            now: Tick::default(),
            candidates: TwoOrders::new(),
            tuner,
        }
    }

    fn recency(&self, (last_used, ..): LruOrder) -> f64 {
        1.0 / f64::from(self.now.since(last_used) + 1)
    }
}

impl EvictionPolicy for MarconiEviction {
    fn offer(&mut self, candidate: &Candidate) {
        let flops_per_byte = candidate.recompute.flops / bytes(candidate);
        self.candidates
            .put(candidate.id, lru_order(candidate), flops_per_byte);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.candidates.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let ends = self.candidates.ends()?;
        let (oldest, youngest) = ends.first;
        let recency = Norm::between(self.recency(oldest), self.recency(youngest));
        let saving = Norm::between(ends.second.0, ends.second.1);
        let utility = |last_use, flops_per_byte| {
            recency.of(self.recency(last_use)) + self.alpha * saving.of(flops_per_byte)
        };
        self.candidates.least(utility).map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.candidates.remove(evicted.id);
        if let Some(tuner) = &mut self.tuner {
            tuner.evicted();
        }
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.now = request.now;
        if let Some(tuner) = &mut self.tuner {
            if tuner.window_is_full() {
                self.alpha = tuner.best_alpha();
                self.tuner = None;
            } else {
                tuner.record(request);
            }
        }
    }
}

/// Maps what lies between the least and the most of some values to 0..1; where they are all equal, to 1.
struct Norm {
    least: f64,
    span: f64,
}

impl Norm {
    fn between(least: f64, most: f64) -> Self {
        Self {
            least,
            span: most - least,
        }
    }

    fn of(&self, value: f64) -> f64 {
        if self.span > 0.0 {
            (value - self.least) / self.span
        } else {
            1.0
        }
    }
}

/// The requests so far, and the cache in which to replay them.
struct Tuner {
    config: CacheConfig,
    cost: SharedCost,
    arena: Vec<BlockId>,
    requests: Vec<Request>,
    /// Requests before the one that evicted first.
    before_window: Option<usize>,
}

impl Tuner {
    /// None without a cost model: then there is nothing to tune by.
    fn new(context: &PolicyContext) -> Option<Self> {
        Some(Self {
            config: CacheConfig {
                evict_unit: EvictUnit::Block,
                ..context.cache
            },
            cost: context.cost.clone()?,
            arena: Vec::new(),
            requests: Vec::new(),
            before_window: None,
        })
    }

    fn record(&mut self, request: &RequestView<'_>) {
        let path_blocks = request.path.len() as u32;
        self.requests.push(Request {
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            path_start: self.arena.len(),
            path_blocks,
            prompt_blocks: request.prompt_blocks,
            seen_blocks: path_blocks,
            ..Request::default()
        });
        self.arena.extend_from_slice(request.path);
    }

    fn evicted(&mut self) {
        let before = self.requests.len().saturating_sub(1);
        self.before_window.get_or_insert(before);
    }

    fn window_is_full(&self) -> bool {
        self.before_window
            .is_some_and(|before| self.requests.len() - before >= WINDOW * before.max(1))
    }

    /// The weight under which the window would have saved the most FLOPs, the smallest of several.
    fn best_alpha(&self) -> f64 {
        let mut best = (0.0, f64::NEG_INFINITY);
        for tenths in 0..=TENTHS {
            let alpha = f64::from(tenths) / 10.0;
            let saved = self.flops_saved(alpha);
            if saved > best.1 {
                best = (alpha, saved);
            }
        }
        best.0
    }

    fn flops_saved(&self, alpha: f64) -> f64 {
        let distinct = self.arena.iter().max().map_or(0, |most| most.0 + 1);
        let mut cache = Cache::new(self.config, &self.arena, distinct, self.cost.as_ref());
        let mut policy = Pair {
            eviction: Box::new(MarconiEviction::new(alpha, None)),
            admission: Box::new(MarconiAdmission),
        };
        let before = self.before_window.unwrap_or(0);
        let mut saved = 0.0;
        let requests = Replay::without_hints(&self.requests);
        cache.replay(requests, &mut policy, |served| {
            if served.index.index() >= before {
                let prompt_tokens = u64::from(served.request.prompt_tokens);
                let cold = self.cost.prefill(prompt_tokens, 0);
                saved += cold.flops - served.outcome.prefill.flops;
            }
        });
        saved
    }
}

#[cfg(test)]
mod tests {
    use cache::Outcome;
    use policy_api::{RequestIndex, Score, StateBytes, Work};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{FlatCost, Trace, asks, config, leaf, view};

    fn candidate(id: u32, last_used: u32, flops: f64) -> Candidate {
        Candidate {
            last_used: Tick(last_used),
            recompute: Work {
                seconds: 0.0,
                flops,
            },
            bytes: 2,
            ..leaf(id)
        }
    }

    /// At request 9 the ages are 2, 5 and 10, so recency is 1, 1/4 and 0 once normalised, and saving 0, 1/2 and 1.
    #[test]
    fn alpha_weighs_saving_against_recency() {
        let first = |alpha: f64| {
            let mut policy = MarconiEviction::new(alpha, None);
            policy.now = Tick(9);
            for one in [
                candidate(1, 8, 10.0),
                candidate(2, 5, 30.0),
                candidate(3, 0, 50.0),
            ] {
                policy.offer(&one);
            }
            policy.victim().map(|victim| victim.id.0)
        };
        assert_eq!(first(0.0), Some(3));
        assert_eq!(first(0.5), Some(3), "a tie at 1/2: the older goes");
        assert_eq!(first(0.6), Some(2));
        assert_eq!(first(2.0), Some(1));
    }

    #[test]
    fn what_is_equal_counts_one() {
        let norm = Norm::between(3.0, 3.0);
        assert_eq!(norm.of(3.0), 1.0);
        let mut policy = MarconiEviction::new(1.0, None);
        policy.offer(&candidate(1, 0, 1.0));
        assert_eq!(policy.victim(), Some(Victim::node(NodeId(1))));
        policy.withdraw(NodeId(1), WithdrawReason::Used);
        assert_eq!(policy.victim(), None);
    }

    proptest! {
        /// Against the definition: every candidate is scored, whatever the order.
        #[test]
        fn the_walk_finds_what_a_scan_finds(
            facts in prop::collection::vec((0u32..12, 0u8..6, 0u32..4), 0..30),
            tenths in 0u32..=20,
            now in 11u32..14,
        ) {
            let alpha = f64::from(tenths) / 10.0;
            let mut policy = MarconiEviction::new(alpha, None);
            policy.now = Tick(now);
            let offered: Vec<_> = (0..).zip(&facts).map(|(id, (last_used, flops, depth_blocks))| Candidate {
                depth_blocks: *depth_blocks,
                ..candidate(id, *last_used, f64::from(*flops))
            }).collect();
            for one in &offered {
                policy.offer(one);
            }
            let recency = |one: &Candidate| 1.0 / f64::from(now - one.last_used.0 + 1);
            let saving = |one: &Candidate| one.recompute.flops / one.bytes as f64;
            let norm = |of: &dyn Fn(&Candidate) -> f64, one: &Candidate| {
                let all = || offered.iter().map(of);
                let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
                if least == most { 1.0 } else { (of(one) - least) / (most - least) }
            };
            let utility = |one: &Candidate| norm(&recency, one) + alpha * norm(&saving, one);
            let first = offered.iter().min_by_key(|one| (Score(utility(one)), lru_order(one), one.id));
            prop_assert_eq!(policy.victim(), first.map(|one| Victim::node(one.id)));
        }
    }

    /// Short paths flood a cache in which long ones come back, each a little longer.
    fn traffic() -> Trace {
        let mut paths = Vec::new();
        for turn in 1..30 {
            for long in ['a', 'b', 'c'] {
                paths.push(long.to_string().repeat(4 + 2 * (turn / 2)));
                paths.push(char::from(b'd' + turn as u8 % 20).to_string().repeat(3));
                paths.push(format!("{}{long}", char::from(b'A' + turn as u8 % 26)));
            }
        }
        Trace::new(&asks(&paths))
    }

    /// What happens to each request under a fixed weight.
    fn outcomes(alpha: f64, trace: &Trace, config: CacheConfig) -> Vec<Outcome> {
        let mut policy = Pair {
            eviction: Box::new(MarconiEviction::new(alpha, None)),
            admission: Box::new(MarconiAdmission),
        };
        let mut cache = trace.cache_of(config);
        let indices = 0..trace.requests.len();
        indices
            .map(|index| trace.serve(index, &mut cache, &mut policy))
            .collect()
    }

    #[test]
    fn alpha_is_the_one_that_would_have_saved_most_in_the_window() {
        let trace = traffic();
        let state = StateBytes {
            fixed: 4,
            ..StateBytes::default()
        };
        let config = config(70, EvictUnit::Block, Some(state));
        let context = PolicyContext {
            cost: Some(std::sync::Arc::new(FlatCost)),
            ..PolicyContext::new(config, 0)
        };
        let evicts = |outcome: &Outcome| {
            outcome.counters.evicted_blocks + outcome.counters.evicted_states.unwrap_or(0) > 0
        };
        let before = outcomes(0.0, &trace, config).iter().position(evicts);
        let before = before.expect("the cache is too small");
        let window = before..before + WINDOW * before;

        let mut policy = MarconiEviction::new(0.0, Tuner::new(&context));
        for (index, request) in trace.requests.iter().enumerate().take(window.end + 1) {
            let request = RequestView {
                index: RequestIndex(index as u32),
                prompt_tokens: request.prompt_tokens,
                ..view(trace.path(index))
            };
            policy.observe(&request, &[]);
            if index == before {
                policy.evicted(&leaf(0), true);
            }
        }
        assert!(policy.tuner.is_none(), "the window of {window:?} is past");
        let saved = |tenths: u32| {
            let outcomes = outcomes(f64::from(tenths) / 10.0, &trace, config);
            outcomes[window.clone()]
                .iter()
                .map(|o| o.counters.hit_blocks)
                .sum::<u64>()
        };
        let saved: Vec<_> = (0..=TENTHS).map(saved).collect();
        let most = saved.iter().max();
        let best = saved
            .iter()
            .position(|one| Some(one) == most)
            .expect("one of them");
        assert!(best > 0, "alpha matters: {saved:?}");
        assert_eq!(policy.alpha, best as f64 / 10.0);
    }
}
