//! The oracle of one trace, ready for any capacity.

use cache::{CacheConfig, EvictUnit};
use policy_api::PrefillCost;
use trace::Workload;

use crate::belady::{Belady, Bypass};
use crate::bracket::{BlockMemory, Bracket, OracleOptions, Recovered};
use crate::certificate::Certificate;
use crate::per_token;
use crate::priced_trace::PricedTrace;
use crate::schedule::{Hits, replay};
use crate::states::StateOracle;

/// A trace, a cost model and a model's memory, prepared for brackets at any capacity. Shared between threads as it is.
pub struct Oracle<'a> {
    trace: PricedTrace<'a>,
    memory: BlockMemory,
    /// Where the model resumes only from saved states.
    states: Option<StateOracle>,
}

impl<'a> Oracle<'a> {
    /// Prepares a trace whose first `warmup_requests` fill the cache and are not measured. Takes the time of one cost
    /// evaluation per touch; holds 8 bytes per touch, and a few dozen bytes per interval.
    pub fn new(
        workload: &'a Workload,
        cost: &'a (dyn PrefillCost + Send + Sync),
        memory: BlockMemory,
        warmup_requests: u32,
    ) -> Self {
        let trace = PricedTrace::new(workload, cost, warmup_requests);
        let state = |state| StateOracle::new(&trace, memory.block_bytes, state);
        Self {
            states: memory.state.map(state),
            memory,
            trace,
        }
    }

    /// The bracket at one capacity.
    pub fn bracket(&self, capacity_bytes: u64, options: &OracleOptions) -> Bracket {
        self.search(capacity_bytes, options).0
    }

    /// What an engine that cannot refuse a running request's blocks reaches under Belady: a feasible lower bound for such
    /// engines. A policy that refuses may exceed it. Only for models whose KV is per token: `None` for others.
    pub fn no_bypass(&self, capacity_bytes: u64) -> Option<Recovered> {
        if self.states.is_some() {
            return None;
        }
        let capacity_blocks = capacity_bytes / self.memory.block_bytes;
        let mut policy = Belady::new(&self.trace.next_use, Bypass::Denied);
        let hits = replay(self.trace.workload, capacity_blocks, &mut policy);
        Some(self.trace.recovered(&hits))
    }

    /// The upper bound in seconds at one capacity, with the prices that prove it: [`verify`](crate::verify) checks them. Only
    /// for models whose KV is per token: `None` for others.
    pub fn certificate(&self, capacity_bytes: u64, options: &OracleOptions) -> Option<Certificate> {
        let capacity_blocks = capacity_bytes / self.memory.block_bytes;
        let certificate = || per_token::certificate(&self.trace, capacity_blocks, options);
        self.states.is_none().then(certificate)
    }

    /// The cache that a bracket is about.
    pub fn cache_config(&self, capacity_bytes: u64) -> CacheConfig {
        CacheConfig {
            capacity_bytes,
            block_bytes: self.memory.block_bytes,
            block_tokens: self.trace.workload.block_tokens(),
            evict_unit: EvictUnit::Block,
            state: self.memory.state,
        }
    }

    pub(crate) fn trace(&self) -> &PricedTrace<'a> {
        &self.trace
    }

    /// The bracket, and the schedule that saves the most seconds of those tried: what the lower bound stands on.
    pub(crate) fn search(&self, capacity_bytes: u64, options: &OracleOptions) -> (Bracket, Hits) {
        match &self.states {
            Some(states) => states.search(&self.trace, capacity_bytes, options),
            None => {
                let capacity_blocks = capacity_bytes / self.memory.block_bytes;
                per_token::search(&self.trace, capacity_blocks, options)
            }
        }
    }
}
