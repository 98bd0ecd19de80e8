//! What may be evicted, and the answer that chooses it.

use crate::{BlockId, NodeId, RequestIndex, Tick, Work};

/// What an eviction of a candidate takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// Blocks from the tail of a leaf node; in checkpoint models the whole node with its state.
    Leaf,
    /// The saved state at the end of a node that has a child. Its blocks stay.
    State,
}

/// What may be evicted now: a leaf node or, in checkpoint models, also the saved state of a node with one child.
///
/// All blocks of a node share these facts. In checkpoint models a use is the use of the state at the node's end, by a request
/// that resumed from it or saved it again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The node.
    pub id: NodeId,
    /// The node above it; `None` at the root.
    pub parent: Option<NodeId>,
    /// Its first block: the key for ghosts and sketches, since the tail of a node comes and goes.
    pub first_block: BlockId,
    /// Its last block.
    pub last_block: BlockId,
    /// Blocks above it on its path.
    pub depth_blocks: u32,
    /// Its length.
    pub blocks: u32,
    /// Blocks of its path up to where a request could resume without it: `depth_blocks`, but in checkpoint models the depth
    /// of the nearest saved state above, as it was when the candidate was offered. The cache does not offer a node anew only
    /// because a state further above came or went.
    pub base_blocks: u32,
    /// What its eviction takes.
    pub kind: CandidateKind,
    /// What its eviction, as a whole, frees.
    pub bytes: u64,
    /// When its blocks last became resident; in checkpoint models, when the state at its end was saved.
    pub created: Tick,
    /// When it was last used.
    pub last_used: Tick,
    /// The request that used it last.
    pub last_request: RequestIndex,
    /// Requests that used it since it became resident, its admission counting 1. Zero only on the path of a request that overlaps
    /// those that brought it in, and where these were abandoned.
    pub uses: u32,
    /// Session of the request that used it last.
    pub last_session: u64,
    /// Step of the request that used it last.
    pub last_step: u32,
    /// Kind of the request that used it last.
    pub last_kind: u16,
    /// What losing it adds to a prompt that goes on and would have resumed from here: the prefill from `base_blocks` on, by the
    /// cost model in force ([`PrefillCost::marginal`](crate::PrefillCost::marginal)).
    /// Zero for a leaf without a state in checkpoint models: no request can resume from it.
    pub recompute: Work,
    /// Different continuations below it that were ever resident while it was.
    pub children_seen: u32,
}

/// Why a node is no longer evictable though nothing of it was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawReason {
    /// A request uses it. It is offered again with new facts, unless by then it has a child.
    Used,
    /// Somebody pinned it.
    Pinned,
}

/// What should be evicted: an evictable node, and at most how many blocks from its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The node.
    pub id: NodeId,
    /// At most this many blocks are evicted, the last ones first, and no more than room is needed for. Where whole leaves are
    /// evicted, and in checkpoint models, the number does not matter.
    pub blocks: u32,
}

impl Victim {
    /// The node, as far as room is needed: all its blocks share the facts that chose it.
    pub fn node(id: NodeId) -> Self {
        Self {
            id,
            blocks: u32::MAX,
        }
    }
}
