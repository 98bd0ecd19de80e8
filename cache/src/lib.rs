//! The radix prefix cache under a policy: look up, insert, evict, within a capacity.
//!
//! This is the only crate that knows what a leaf is. The tree is made of *nodes*: stretches of blocks that were touched by the
//! same requests, so they share every fact. A node is a slice of the loaded trace, so its blocks are never copied. `owner` says
//! for every block of the trace which node holds it. A block id implies its whole prefix; so the resident blocks of a path are
//! always its first ones, a match is a binary search in `owner`, and there are no child maps.
//!
//! Requests are [served](Cache::serve) one after another, or hold [leases](Lease) that overlap. [`Cache::replay`] serves a whole
//! trace. Models whose KV is per token and models that resume only where a state was saved take different steps: `step` and
//! `checkpoints`.
//!
//! What this crate does not know: traces, models, GPUs, clocks, and the future.

mod audit;
mod checkpoints;
mod config;
mod counters;
mod factory;
mod facts;
mod lease;
mod nodes;
mod pins;
mod replay;
mod room;
mod step;
mod tree;

use policy_api::{
    BlockId, Candidate, NodeId, PolicyFault, PrefillCost, Request, RequestIndex, Tick,
};

pub use config::{CacheConfig, EvictUnit};
pub use counters::Counters;
pub use factory::{PolicyContext, PolicyFactory, SharedCost, Track};
pub use lease::{Lease, NoRoom};
pub use pins::Pin;
pub use replay::{Replay, Served};
pub use room::{Evicted, EvictionReason};
pub use step::Outcome;

use nodes::Nodes;
use room::Sink;

/// Blocks of a cache by what may happen to them. Together they are the capacity, except for what saved states take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Not in use.
    pub free_blocks: u64,
    /// Resident and not pinned.
    pub evictable_blocks: u64,
    /// Resident and pinned, or held by a lease.
    pub pinned_blocks: u64,
}

/// Owner of a block that was never resident, or was asked for again after its eviction.
const ABSENT: u32 = u32::MAX;
/// Owner of a block that was evicted and has not been asked for since.
const EVICTED: u32 = u32::MAX - 1;

/// The cache. `'t` is the life of the loaded trace, whose blocks it points at.
///
/// Two requests, under a policy that evicts any one of the leaves:
///
/// ```
/// use cache::{Cache, CacheConfig, EvictUnit};
/// use policy_api::*;
///
/// /// Evicts the leaf that was offered last.
/// #[derive(Default)]
/// struct LastOffered(Vec<NodeId>);
///
/// impl EvictionPolicy for LastOffered {
///     fn offer(&mut self, leaf: &Candidate) {
///         self.withdraw(leaf.id, WithdrawReason::Used);
///         self.0.push(leaf.id);
///     }
///     fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
///         self.0.retain(|other| *other != id);
///     }
///     fn victim(&mut self) -> Option<Victim> {
///         self.0.last().copied().map(Victim::node)
///     }
///     fn evicted(&mut self, part: &Candidate, _: bool) {
///         self.withdraw(part.id, WithdrawReason::Used);
///     }
/// }
///
/// impl AdmissionPolicy for LastOffered {
///     fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
///         request.path.len() as u32
///     }
/// }
///
/// /// A token costs a second.
/// struct Flat;
///
/// impl PrefillCost for Flat {
///     fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
///         Work { seconds: (total_tokens - cached_tokens) as f64, flops: 0.0 }
///     }
/// }
///
/// // Two prompts of two blocks and one token more. They share their first block.
/// let arena = [0, 1, 0, 2].map(BlockId);
/// let first = Request {
///     path_start: 0, path_blocks: 2, prompt_blocks: 2, prompt_tokens: 33, ..Request::default()
/// };
/// let second = Request { path_start: 2, seen_blocks: 1, ..first };
/// let config = CacheConfig {
///     capacity_bytes: 2, block_bytes: 1, block_tokens: 16, evict_unit: EvictUnit::Block, state: None,
/// };
/// let mut cache = Cache::new(config, &arena, 3, &Flat);
/// let mut policy = LastOffered::default();
///
/// let outcome = cache.serve(RequestIndex(0), &first, None, &mut policy);
/// assert_eq!((outcome.counters.hit_blocks, outcome.counters.admitted_blocks), (0, 2));
/// let outcome = cache.serve(RequestIndex(1), &second, None, &mut policy);
/// assert_eq!((outcome.counters.hit_blocks, outcome.prefill.seconds), (1, 17.0));
/// assert_eq!(outcome.counters.evicted_blocks, 1, "there was no room for a third block");
/// ```
pub struct Cache<'t> {
    config: CacheConfig,
    capacity_blocks: u64,
    arena: &'t [BlockId],
    cost: &'t dyn PrefillCost,
    nodes: Nodes,
    /// Per block of the trace the node that holds it, or `ABSENT`, or `EVICTED`.
    owner: Vec<u32>,
    used_blocks: u64,
    pinned_blocks: u64,
    /// Bytes of all saved states.
    state_bytes: u64,
    /// Bytes of those that are saved at the end of pinned nodes.
    pinned_state_bytes: u64,
    /// Bytes that leases hold for states that they will save when they finish.
    reserved_state_bytes: u64,
    /// Events so far.
    now: Tick,
    /// The request of the present event.
    present: RequestIndex,
    fault_count: u64,
    first_fault: Option<(RequestIndex, PolicyFault)>,
    sink: Option<Sink<'t>>,
    /// The nodes on the present path, from the root. Kept to save an allocation per request.
    path_nodes: Vec<NodeId>,
    path_facts: Vec<Candidate>,
    /// Depths at which the present request saves a state. Likewise.
    checkpoint_depths: Vec<u32>,
}

impl<'t> Cache<'t> {
    /// An empty cache for the paths of `arena`, in which block ids are below `distinct_blocks`.
    ///
    /// # Panics
    /// If a block has no bytes or no tokens, or if a checkpoint model is to evict whole leaves, which it does anyway.
    pub fn new(
        config: CacheConfig,
        arena: &'t [BlockId],
        distinct_blocks: u32,
        cost: &'t dyn PrefillCost,
    ) -> Self {
        assert!(
            config.block_bytes > 0 && config.block_tokens > 0,
            "a block has bytes and tokens"
        );
        assert!(
            config.state.is_none() || config.evict_unit == EvictUnit::Block,
            "with saved states whole nodes are evicted, whatever the unit"
        );
        Self {
            config,
            capacity_blocks: config.capacity_blocks(),
            arena,
            cost,
            nodes: Nodes::default(),
            owner: vec![ABSENT; distinct_blocks as usize],
            used_blocks: 0,
            pinned_blocks: 0,
            state_bytes: 0,
            pinned_state_bytes: 0,
            reserved_state_bytes: 0,
            now: Tick::default(),
            present: RequestIndex::default(),
            fault_count: 0,
            first_fault: None,
            sink: None,
            path_nodes: Vec::new(),
            path_facts: Vec::new(),
            checkpoint_depths: Vec::new(),
        }
    }

    /// The sizes it was made with.
    pub fn config(&self) -> CacheConfig {
        self.config
    }

    /// Blocks by what may happen to them.
    pub fn usage(&self) -> Usage {
        let state_bytes = self.state_bytes + self.reserved_state_bytes;
        let states_in_blocks = state_bytes.div_ceil(self.config.block_bytes);
        Usage {
            free_blocks: self
                .capacity_blocks
                .saturating_sub(self.used_blocks + states_in_blocks),
            evictable_blocks: self.used_blocks - self.pinned_blocks,
            pinned_blocks: self.pinned_blocks,
        }
    }

    /// Bytes of all resident blocks and saved states, and of what leases hold for states to come.
    pub fn used_bytes(&self) -> u64 {
        self.used_blocks * self.config.block_bytes + self.state_bytes + self.reserved_state_bytes
    }

    /// Whether the block is resident.
    pub fn is_resident(&self, block: BlockId) -> bool {
        self.owner[block.index()] < EVICTED
    }

    /// All resident blocks in ascending order.
    pub fn resident_blocks(&self) -> Vec<BlockId> {
        let owners = (0..).zip(&self.owner);
        let resident = owners.filter(|(_, owner)| **owner < EVICTED);
        resident.map(|(block, _)| BlockId(block)).collect()
    }

    /// The blocks at whose end a state is saved, in ascending order; checkpoint models only.
    pub fn saved_states(&self) -> Vec<BlockId> {
        let saved = self.nodes.live().filter(|(_, node)| node.has_state);
        let last = saved.map(|(_, node)| self.arena[node.start + node.blocks as usize - 1]);
        let mut blocks: Vec<_> = last.collect();
        blocks.sort_unstable();
        blocks
    }

    /// Leading resident blocks of `path`. Asking changes nothing.
    pub fn held_blocks(&self, path: &[BlockId]) -> u32 {
        // Mostly all that was ever seen of a path is still here: one probe instead of a search.
        let held = match path.last() {
            Some(last) if self.is_resident(*last) => path.len(),
            _ => path.partition_point(|block| self.is_resident(*block)),
        };
        held as u32
    }

    /// All nodes that may be evicted now, in id order: what a policy that joins a warm cache is offered.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.nodes
            .live()
            .filter(|(_, node)| node.evictable)
            .map(|(id, _)| self.candidate(id))
            .collect()
    }

    /// Wrong answers of the policy so far.
    pub fn fault_count(&self) -> u64 {
        self.fault_count
    }

    /// The first wrong answer of the policy, and the request it was given at.
    pub fn first_fault(&self) -> Option<(RequestIndex, PolicyFault)> {
        self.first_fault
    }

    /// The path of a request, as a part of the trace rather than of the cache.
    fn path(&self, request: &Request) -> &'t [BlockId] {
        &self.arena[request.path_range()]
    }

    /// The node that holds the last of the first `depth_blocks` blocks of a path, all of which are resident.
    fn node_at(&self, path: &[BlockId], depth_blocks: u32) -> Option<NodeId> {
        let last = path[depth_blocks.checked_sub(1)? as usize];
        Some(NodeId(self.owner[last.index()]))
    }

    /// The event is over.
    fn end_event(&mut self) {
        self.audit_in_debug_builds();
        self.now = self.now.next();
    }

    fn fault(&mut self, fault: PolicyFault) {
        self.fault_count += 1;
        self.first_fault.get_or_insert((self.present, fault));
    }
}
