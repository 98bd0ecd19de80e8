//! The radix prefix cache: match, split, insert, evict, pins, capacity; and the step of one request.
//!
//! The only place that knows what a leaf is. The tree is kept as *nodes*: stretches of blocks that were touched by the
//! same requests, so they share every fact. A node is a slice of the loaded trace (its blocks are never copied), and
//! `owner` says for every block of the trace which node holds it. Since a block id implies its whole prefix, residency
//! along a path is monotone, and a match is a binary search in `owner`; there are no child maps at all.
//!
//! `step` serves models whose KV is per token, `checkpoints` those that resume only where a state was saved.
//!
//! What this crate does not know: traces, models, GPUs, clocks, and the future.

mod audit;
mod checkpoints;
mod counters;
mod factory;
mod nodes;
mod pins;
mod step;

use policy_api::{
    BlockId, Candidate, CandidateKind, NodeId, PolicyFault, PrefillCost, StateBytes, Work,
};

pub use counters::Counters;
pub use factory::{PolicyContext, PolicyFactory, SharedCost, Track};
pub use pins::Pin;
pub use step::Outcome;

use nodes::{Node, Nodes};

/// What goes at one eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictUnit {
    /// As many blocks from the tail of the victim as room is needed.
    #[default]
    Block,
    /// The whole victim. Nodes are those of the tree as built so far: they split where a lookup or an insert ends or
    /// diverges, and a tail that was split off keeps its access time.
    Leaf,
    /// The same, but a split refreshes the tail too, because SGLang stamps a node before it splits it
    /// (`radix_cache.py`, `_match_prefix_helper`).
    LeafSglang,
}

impl EvictUnit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Block, Self::Leaf, Self::LeafSglang];

    /// Its name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Leaf => "leaf",
            Self::LeafSglang => "leaf-sglang",
        }
    }
}

/// Sizes of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Memory for blocks. 0 is legal and holds nothing.
    pub capacity_bytes: u64,
    /// Memory of one block, at least 1.
    pub block_bytes: u64,
    /// Tokens of one block, at least 1.
    pub block_tokens: u32,
    /// What goes at one eviction, where KV is per token.
    pub evict_unit: EvictUnit,
    /// For models that resume only where a state was saved: what one weighs.
    pub state: Option<StateBytes>,
}

impl CacheConfig {
    /// Whole blocks that fit.
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_bytes / self.block_bytes
    }
}

/// Blocks of a cache by what may happen to them; together they are the capacity, but for what saved states take of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Not in use.
    pub free_blocks: u64,
    /// Resident and not pinned.
    pub evictable_blocks: u64,
    /// Resident and pinned.
    pub pinned_blocks: u64,
}

/// A block that was never resident, or was asked for again after it went.
const ABSENT: u32 = u32::MAX;
/// A block that was evicted and has not been asked for since.
const EVICTED: u32 = u32::MAX - 1;

/// The cache. `'t` is the life of the loaded trace, whose blocks it points at.
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
    fault_count: u64,
    first_fault: Option<(u32, PolicyFault)>,
    /// The nodes on the present path, from the root. Kept to save an allocation a request.
    path_nodes: Vec<NodeId>,
    path_facts: Vec<Candidate>,
    /// Depths at which the present request saves a state. Likewise.
    checkpoint_depths: Vec<u32>,
}

impl<'t> Cache<'t> {
    /// An empty cache for the paths of `arena`, in which block ids are below `distinct_blocks`.
    ///
    /// # Panics
    /// If a block has no bytes or no tokens, or states are saved and leaves are to go whole, which they do anyway.
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
            "with saved states whole nodes go, whatever the unit"
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
            fault_count: 0,
            first_fault: None,
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
        let states_in_blocks = self.state_bytes.div_ceil(self.config.block_bytes);
        Usage {
            free_blocks: self
                .capacity_blocks
                .saturating_sub(self.used_blocks + states_in_blocks),
            evictable_blocks: self.used_blocks - self.pinned_blocks,
            pinned_blocks: self.pinned_blocks,
        }
    }

    /// Bytes of all resident blocks and saved states.
    pub fn used_bytes(&self) -> u64 {
        self.used_blocks * self.config.block_bytes + self.state_bytes
    }

    /// Whether the block is resident.
    pub fn is_resident(&self, block: BlockId) -> bool {
        self.owner[block as usize] < EVICTED
    }

    /// All resident blocks in ascending order.
    pub fn resident_blocks(&self) -> Vec<BlockId> {
        (0..)
            .zip(&self.owner)
            .filter(|(_, owner)| **owner < EVICTED)
            .map(|(block, _)| block)
            .collect()
    }

    /// The blocks at whose end a state is saved, in ascending order; checkpoint models only.
    pub fn saved_states(&self) -> Vec<BlockId> {
        let saved = self.nodes.live().filter(|(_, node)| node.has_state);
        let last = saved.map(|(_, node)| self.arena[node.start + node.blocks as usize - 1]);
        let mut blocks: Vec<_> = last.collect();
        blocks.sort_unstable();
        blocks
    }

    /// Leading resident blocks of `path`. A lookup changes nothing.
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
    pub fn first_fault(&self) -> Option<(u32, PolicyFault)> {
        self.first_fault
    }

    /// The facts of a node as a policy sees them.
    fn candidate(&self, id: NodeId) -> Candidate {
        let node = &self.nodes[id];
        match self.config.state {
            None => self.candidate_part(id, node, 0),
            Some(state) => self.checkpoint_candidate(id, state),
        }
    }

    /// The facts of a node's part from block `from` on.
    fn candidate_part(&self, id: NodeId, node: &Node, from: u32) -> Candidate {
        let part = self.unpriced_part(id, node, from);
        Candidate {
            recompute: self.prefill_blocks(part.depth_blocks + part.blocks, part.depth_blocks),
            ..part
        }
    }

    /// The same without what it costs.
    fn unpriced_part(&self, id: NodeId, node: &Node, from: u32) -> Candidate {
        let depth_blocks = node.depth_blocks + from;
        let blocks = node.blocks - from;
        Candidate {
            id,
            parent: node.parent,
            first_block: self.arena[node.start + from as usize],
            last_block: self.arena[node.start + node.blocks as usize - 1],
            depth_blocks,
            blocks,
            base_blocks: depth_blocks,
            kind: CandidateKind::Leaf,
            bytes: u64::from(blocks) * self.config.block_bytes,
            created: node.touch.created,
            last_used: node.touch.last_used,
            uses: node.touch.uses,
            last_session: node.touch.session,
            last_step: node.touch.step,
            last_kind: node.touch.kind,
            recompute: Work::default(),
            children_seen: node.children_seen,
        }
    }

    /// What losing the blocks from `cached` to `total` adds to a prompt that goes on.
    fn prefill_blocks(&self, total: u32, cached: u32) -> Work {
        self.cost.marginal(self.tokens(total), self.tokens(cached))
    }

    fn tokens(&self, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(self.config.block_tokens)
    }
}
