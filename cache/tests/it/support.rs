//! Small traces for the tests of the cache: paths of labels, block ids that imply their prefix, a flat cost.

use std::collections::HashMap;

use cache::{Cache, CacheConfig, EvictUnit, Outcome};
use policies::PolicyContext;
use policy_api::{BlockId, Pair, Policy, PrefillCost, Request, StateBytes, Work};
use proptest::prelude::*;

/// Every token costs one second and one FLOP.
pub(crate) struct FlatCost;

impl PrefillCost for FlatCost {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let tokens = (total_tokens - cached_tokens) as f64;
        Work {
            seconds: tokens,
            flops: tokens,
        }
    }
}

/// One request: the labels of its path's blocks, how many are the prompt's, and the prompt's tokens beyond them.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) labels: Vec<u32>,
    pub(crate) prompt_blocks: u32,
    pub(crate) extra_tokens: u32,
}

/// A prompt of full blocks and `extra_tokens` more, without output.
pub(crate) fn ask(labels: &[u32], extra_tokens: u32) -> Ask {
    Ask {
        labels: labels.to_vec(),
        prompt_blocks: labels.len() as u32,
        extra_tokens,
    }
}

/// Requests with their paths as dense ids in one arena.
pub(crate) struct SmallTrace {
    pub(crate) arena: Vec<BlockId>,
    pub(crate) requests: Vec<Request>,
    pub(crate) distinct_blocks: u32,
    pub(crate) block_tokens: u32,
}

impl SmallTrace {
    pub(crate) fn new(block_tokens: u32, asks: &[Ask]) -> Self {
        let mut dense: HashMap<Vec<u32>, BlockId> = HashMap::new();
        let mut trace = Self {
            arena: Vec::new(),
            requests: Vec::new(),
            distinct_blocks: 0,
            block_tokens,
        };
        for (index, ask) in asks.iter().enumerate() {
            let path_start = trace.arena.len();
            let known = dense.len();
            let mut seen_blocks = 0;
            for end in 1..=ask.labels.len() {
                let fresh = dense.len() as BlockId;
                let block = *dense.entry(ask.labels[..end].to_vec()).or_insert(fresh);
                seen_blocks += u32::from((block as usize) < known);
                trace.arena.push(block);
            }
            trace.requests.push(Request {
                request_id: index as u64,
                parent_request: None,
                path_start,
                path_blocks: ask.labels.len() as u32,
                prompt_blocks: ask.prompt_blocks,
                seen_blocks,
                prompt_tokens: ask.prompt_blocks * block_tokens + ask.extra_tokens,
                output_tokens: 0,
                arrival_us: index as i64,
                session_id: 0,
                step: 0,
                kind: 0,
                tool: None,
                tenant: 0,
            });
        }
        trace.distinct_blocks = dense.len() as u32;
        trace
    }

    pub(crate) fn path(&self, index: usize) -> &[BlockId] {
        let request = &self.requests[index];
        &self.arena[request.path_start..request.path_start + request.path_blocks as usize]
    }

    pub(crate) fn cache(&self, capacity_blocks: u64, evict_unit: EvictUnit) -> Cache<'_> {
        self.cache_of(capacity_blocks, evict_unit, None)
    }

    /// A cache for a model that resumes from states of so many bytes only.
    pub(crate) fn cache_of_states(&self, capacity_bytes: u64, state_bytes: u64) -> Cache<'_> {
        let state = StateBytes {
            fixed: state_bytes,
            ..StateBytes::default()
        };
        self.cache_of(capacity_bytes, EvictUnit::Block, Some(state))
    }

    fn cache_of(
        &self,
        capacity_bytes: u64,
        evict_unit: EvictUnit,
        state: Option<StateBytes>,
    ) -> Cache<'_> {
        let config = CacheConfig {
            capacity_bytes,
            block_bytes: 1,
            block_tokens: self.block_tokens,
            evict_unit,
            state,
        };
        Cache::new(config, &self.arena, self.distinct_blocks, &FlatCost)
    }

    /// Serves the request at `index`.
    pub(crate) fn serve(
        &self,
        index: usize,
        cache: &mut Cache<'_>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        cache.serve(index as u32, &self.requests[index], None, policy)
    }

    /// Serves all requests and returns what happened.
    pub(crate) fn serve_all(&self, cache: &mut Cache<'_>, policy: &mut dyn Policy) -> Vec<Outcome> {
        (0..self.requests.len())
            .map(|index| self.serve(index, cache, policy))
            .collect()
    }

    /// Hit blocks of every request at a capacity.
    pub(crate) fn hits(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<u64> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        self.serve_all(&mut cache, policy)
            .iter()
            .map(|outcome| outcome.counters.hit_blocks)
            .collect()
    }
}

/// A registered eviction policy that admits everything.
pub(crate) fn policy(name: &str, capacity_blocks: u64) -> Pair {
    pair(name, "all", capacity_blocks)
}

/// Registered policies.
pub(crate) fn pair(name: &str, admission: &str, capacity_blocks: u64) -> Pair {
    let context = PolicyContext::new(
        CacheConfig {
            capacity_bytes: capacity_blocks,
            block_bytes: 1,
            block_tokens: 1,
            evict_unit: EvictUnit::Block,
            state: None,
        },
        0,
    );
    policies::build(
        &policies::eviction(name).expect("registered"),
        &policies::admission(admission).expect("registered"),
        &context,
    )
}

/// Paths over a small alphabet, so that they share, extend and diverge often.
pub(crate) fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (prop::collection::vec(0u32..3, 0..7), 0u32..3, 0u32..4).prop_map(
        |(labels, output, extra_tokens)| {
            let prompt_blocks = (labels.len() as u32).saturating_sub(output);
            Ask {
                labels,
                prompt_blocks,
                extra_tokens,
            }
        },
    );
    prop::collection::vec(ask, 1..40)
}
