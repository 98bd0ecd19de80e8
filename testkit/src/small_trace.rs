//! A few requests with their paths in one arena.

use std::collections::HashMap;

use cache::{Cache, CacheConfig, EvictUnit, Outcome};
use policy_api::{
    BlockId, Candidate, Hints, Inspect, Policy, PolicyCall, Request, RequestIndex, StateBytes,
};

use crate::ask::Ask;
use crate::facts::{FlatCost, config};

/// Requests with their paths as dense ids in one arena.
#[derive(Debug)]
pub struct SmallTrace {
    /// The requests.
    pub requests: Vec<Request>,
    /// The blocks of all paths.
    pub arena: Vec<BlockId>,
    /// Tokens of a block.
    pub block_tokens: u32,
    hints: Vec<Option<Hints>>,
    /// Per block its label.
    labels: Vec<u32>,
    /// Per block the one above it.
    parents: Vec<Option<BlockId>>,
}

impl SmallTrace {
    /// A trace of blocks of one token.
    pub fn new(asks: &[Ask]) -> Self {
        Self::of_blocks(1, asks)
    }

    /// A trace of blocks of so many tokens.
    pub fn of_blocks(block_tokens: u32, asks: &[Ask]) -> Self {
        let mut dense: HashMap<&[u32], BlockId> = HashMap::new();
        let mut trace = Self {
            requests: Vec::new(),
            arena: Vec::new(),
            block_tokens,
            hints: Vec::new(),
            labels: Vec::new(),
            parents: Vec::new(),
        };
        for ask in asks {
            trace.push(ask, &mut dense);
        }
        trace
    }

    fn push<'a>(&mut self, ask: &'a Ask, dense: &mut HashMap<&'a [u32], BlockId>) {
        let index = self.requests.len();
        let path_start = self.arena.len();
        let known = self.distinct_blocks();
        let mut seen_blocks = 0;
        let mut parent = None;
        for (depth, &label) in ask.labels.iter().enumerate() {
            let fresh = BlockId(self.labels.len() as u32);
            let block = *dense.entry(&ask.labels[..=depth]).or_insert(fresh);
            if block == fresh {
                self.labels.push(label);
                self.parents.push(parent);
            }
            seen_blocks += u32::from(block.0 < known);
            self.arena.push(block);
            parent = Some(block);
        }
        let path_blocks = ask.labels.len() as u32;
        let prompt_blocks = path_blocks - ask.output_blocks;
        self.requests.push(Request {
            request_id: index as u64,
            arrival_us: ask.arrival_us.unwrap_or(index as i64 * 1_000_000),
            prompt_tokens: prompt_blocks * self.block_tokens + ask.extra_tokens,
            path_start,
            path_blocks,
            prompt_blocks,
            seen_blocks,
            ..ask.request
        });
        self.hints.push(ask.hints);
    }

    /// Number of different blocks.
    pub fn distinct_blocks(&self) -> u32 {
        self.labels.len() as u32
    }

    /// The path of the request at `index`.
    pub fn path(&self, index: usize) -> &[BlockId] {
        &self.arena[self.requests[index].path_range()]
    }

    /// A cache of blocks of one byte.
    pub fn cache(&self, capacity_blocks: u64, evict_unit: EvictUnit) -> Cache<'_> {
        self.cache_of(config(capacity_blocks, evict_unit, None))
    }

    /// A cache of blocks of one byte, for a model that resumes only from states of so many bytes.
    pub fn cache_of_states(&self, capacity_bytes: u64, state_bytes: u64) -> Cache<'_> {
        let state = StateBytes {
            fixed: state_bytes,
            ..StateBytes::default()
        };
        self.cache_of(config(capacity_bytes, EvictUnit::Block, Some(state)))
    }

    /// A cache of any shape, but for the tokens of a block, which are the trace's.
    pub fn cache_of(&self, config: CacheConfig) -> Cache<'_> {
        let config = CacheConfig {
            block_tokens: self.block_tokens,
            ..config
        };
        Cache::new(config, &self.arena, self.distinct_blocks(), &FlatCost)
    }

    /// The hints of the request at `index`.
    pub fn hints(&self, index: usize) -> Option<&Hints> {
        self.hints[index].as_ref()
    }

    /// Serves the request at `index`.
    pub fn serve(&self, index: usize, cache: &mut Cache<'_>, policy: &mut dyn Policy) -> Outcome {
        let request = &self.requests[index];
        cache.serve(
            RequestIndex(index as u32),
            request,
            self.hints(index),
            policy,
        )
    }

    /// Serves all requests and returns what happened.
    pub fn serve_all(&self, cache: &mut Cache<'_>, policy: &mut dyn Policy) -> Vec<Outcome> {
        (0..self.requests.len())
            .map(|index| self.serve(index, cache, policy))
            .collect()
    }

    /// Hit blocks of every request at a capacity.
    pub fn hits(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<u64> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        let outcomes = self.serve_all(&mut cache, policy);
        let hits = outcomes.iter().map(|outcome| outcome.counters.hit_blocks);
        hits.collect()
    }

    /// What each request evicts, in order, a letter per block. Every question is asked twice on the way.
    ///
    /// # Panics
    /// If the policy answers wrongly, or not the same twice.
    pub fn victims(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<String> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        let victims = (0..self.requests.len())
            .map(|index| {
                let mut victims = String::new();
                let mut watched = Inspect::new(&mut *policy, |policy, call| match call {
                    PolicyCall::Victim(victim) => {
                        assert_eq!(policy.victim(), victim, "asked twice");
                    }
                    PolicyCall::Evicted { part, .. } => victims.extend(self.tail_first(part)),
                    _ => (),
                });
                self.serve(index, &mut cache, &mut watched);
                victims
            })
            .collect();
        assert_eq!(cache.first_fault(), None);
        victims
    }

    /// Blocks of its path that each request admits or holds.
    ///
    /// # Panics
    /// If the policy answers wrongly.
    pub fn admitted(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<u32> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        let outcomes = self.serve_all(&mut cache, policy);
        assert_eq!(cache.first_fault(), None);
        outcomes
            .iter()
            .map(|outcome| outcome.held_blocks + outcome.counters.admitted_blocks as u32)
            .collect()
    }

    fn tail_first(&self, part: &Candidate) -> impl Iterator<Item = char> {
        std::iter::successors(Some(part.last_block), |block| self.parents[block.index()])
            .take(part.blocks as usize)
            .map(|block| char::from_u32(self.labels[block.index()]).unwrap_or('?'))
    }
}
