//! The contract between the cache and a policy, and its nouns.
//!
//! The hard choice: **the cache asks, the policy answers.** A policy never touches the tree. It hears which nodes of
//! blocks may go now ([`Candidate`]s), names one when the cache is over its capacity, and says how much of a path may
//! come in. The cache carries the answer out, checks it, and reports a wrong one as a [`PolicyFault`]. So no policy can
//! leave a hole in a prefix, free what is pinned, or exceed the capacity, and a policy is a page of code about one idea.
//!
//! Why candidates and not blocks: all blocks of a *node* were touched by the same requests, so they share every fact a
//! rule may use. The cache splits a node where a path ends or diverges; a policy is called about eight times a request,
//! never once a block.
//!
//! The calls of one request, in order:
//!
//! 1. [`split`](EvictionPolicy::split) where the path ends or diverges inside a node; if that node is evictable, an `offer` of what
//!    is cut off.
//! 2. [`observe`](EvictionPolicy::observe) with the request, before anything of it is offered.
//! 3. [`withdraw`](EvictionPolicy::withdraw) of the path's last resident node, if it was evictable.
//! 4. [`victim`](EvictionPolicy::victim), if the admission policy [needs a rival](AdmissionPolicy::needs_rival); then
//!    [`admit`](AdmissionPolicy::admit).
//! 5. [`offer`](EvictionPolicy::offer) of the path's new last node.
//! 6. While the cache is over its capacity: [`victim`](EvictionPolicy::victim), then
//!    [`evicted`](EvictionPolicy::evicted), then an `offer` of what is left of the node, or of a parent that became a
//!    leaf.
//!
//! Models whose state is not per token (state-space layers, sliding windows) resume only where a state was saved. Their
//! caches hold *checkpoints*: a node may have a saved state at its end, and a candidate is a leaf node with all that it
//! holds, or the state of a node with one child ([`CandidateKind`]). In step 3 every node of the path that is evictable is withdrawn; after
//! `admit` the admission policy says [where to save states](AdmissionPolicy::checkpoints), for which nodes may be split once more;
//! in step 5 every node of the path that may go is offered; in step 6 whole candidates go. A node that has one child and no state
//! is [merged](EvictionPolicy::merge) with it, so that nodes end where something was saved, branches, or ends.
//!
//! Generics, closures and associated types are absent from the traits, so a WebAssembly guest can implement the same
//! verbs; the crate is `no_std` and has no dependencies for the same reason.

#![no_std]

extern crate alloc;

mod in_order;
mod ranked;
mod request;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

pub use in_order::InOrder;
pub use ranked::Ranked;
pub use request::{Hints, Request, RequestView};

/// A block's dense id within one trace, given in order of first touch: it tells nothing of the future.
///
/// It stands for the whole prefix up to the block's end, so equal ids mean equal paths from the root.
pub type BlockId = u32;

/// Names a node of the cache. Ids of nodes that are gone are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The id as an index into a policy's own table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What goes when a candidate is evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateKind {
    /// Blocks from the tail of a leaf node; in checkpoint models the whole node, with its state.
    Leaf,
    /// The saved state at the end of a node that has a child. Its blocks stay.
    State,
}

/// What may be evicted now: a leaf node with the facts that all its blocks share or, in checkpoint models, also the saved
/// state of a node with one child.
///
/// Request indices count requests of the trace from 0 and are the policy's logical clock. In checkpoint models a use is the
/// use of the state at the node's end, by a request that resumed from it or saved it again.
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
    /// of the nearest saved state above, as it was when the candidate was offered. That another state above came or went is
    /// no reason to offer what lies further below anew.
    pub base_blocks: u32,
    /// What goes with it.
    pub kind: CandidateKind,
    /// What evicting it, as a whole, frees.
    pub bytes: u64,
    /// The request at which its blocks last became resident; in checkpoint models, at which the state at its end was saved.
    pub created: u32,
    /// The request that touched it last.
    pub last_used: u32,
    /// Requests that touched it since it became resident, its admission counting 1.
    pub uses: u32,
    /// Session of the request that touched it last.
    pub last_session: u64,
    /// Step of the request that touched it last.
    pub last_step: u32,
    /// Kind of the request that touched it last.
    pub last_kind: u16,
    /// What losing it adds to a prompt that goes on and would have resumed from here: the prefill from `base_blocks` on, without
    /// the fixed costs of a pass, by the cost model in force ([`PrefillCost::marginal`]). Nothing for a leaf without a state in checkpoint models: no request can resume from it.
    pub recompute: Work,
    /// Different continuations below it that were ever resident while it was.
    pub children_seen: u32,
}

/// Why a node is no longer evictable though nothing of it was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithdrawReason {
    /// The present request touches it; it comes back with new facts, or above a new node.
    Used,
    /// Somebody pinned it.
    Pinned,
}

/// What should be evicted: a node that is evictable, and at most how many blocks from its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The node.
    pub id: NodeId,
    /// At most this many blocks go, the last ones first, and no more than the overflow. Where leaves go whole, and in
    /// checkpoint models, the candidate goes whatever is said here.
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

/// Says which node goes when the cache is over its capacity.
pub trait EvictionPolicy {
    /// The node may be chosen from now on. An offer of a node that is evictable replaces the former one.
    fn offer(&mut self, candidate: &Candidate);

    /// The node may no longer be chosen.
    fn withdraw(&mut self, id: NodeId, why: WithdrawReason);

    /// What should go first; `None` only when nothing is evictable.
    ///
    /// Being asked changes nothing: asked twice without a call between, the answer is the same, and the cache may ask
    /// without evicting.
    fn victim(&mut self) -> Option<Victim>;

    /// Exactly this part went: blocks from the tail of a node, or the `whole` node, whose id is then dead. Of a node that lost only
    /// its state no block went (`gone.blocks` is 0); it is merged with its child right after.
    ///
    /// What is left of the node, or a parent that became a leaf, is offered next.
    fn evicted(&mut self, evicted: &Candidate, whole: bool);

    /// A node was cut in two: `tail` is the old id, `head` a new one that starts with the same history.
    fn split(&mut self, _head: NodeId, _tail: NodeId) {}

    /// Checkpoint models: a node without a state became one with its only child, whose id and history stay. The head's id is
    /// dead, its `head_blocks` are the tail's; if the tail is evictable, it is offered again.
    fn merge(&mut self, _head: NodeId, _tail: NodeId, _head_blocks: u32) {}

    /// Whether [`observe`](Self::observe) should be given the nodes on the path.
    fn wants_path_nodes(&self) -> bool {
        false
    }

    /// Once a request, before anything of it is offered. `nodes` are the resident nodes on its path from the root, with
    /// their facts as they were before this request; empty unless [wanted](Self::wants_path_nodes).
    fn observe(&mut self, _request: &RequestView<'_>, _runs: &[Candidate]) {}
}

/// How a path lies in the tree of a checkpoint model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInsertion {
    /// Leading blocks of the path that are resident once it is admitted.
    pub resident_blocks: u32,
    /// The path was found to leave an existing node between its ends, `held_blocks` deep.
    pub diverges_inside_node: bool,
}

/// Says how much of a path may be resident.
pub trait AdmissionPolicy {
    /// Whether [`admit`](Self::admit) should be given the node that would go first.
    fn needs_rival(&self) -> bool {
        false
    }

    /// How many leading blocks of the path may be resident: from `request.held_blocks` to the whole path.
    ///
    /// Called once a request, also when nothing of it is fresh, after `observe` and before room is made. `rival` is the
    /// first node that would go, never one on the request's own path.
    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32;

    /// Checkpoint models: adds to `positions` the depths, in blocks, at which the request should save a state.
    ///
    /// A request passes every depth below its hit, and can save at any of them that is resident afterwards; what it cannot save
    /// is passed over. A depth beyond the path is a fault. By default states are saved where the path leaves a node between its
    /// ends, so that others which share that prefix resume there; where the prompt ends, as far as it is resident; and where what
    /// is resident ends: a request that continues this one resumes from there, and if it words the answer differently still from
    /// the end of the prompt.
    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        positions: &mut Vec<u32>,
    ) {
        if insertion.diverges_inside_node {
            positions.push(request.held_blocks);
        }
        positions.push(request.prompt_blocks.min(insertion.resident_blocks));
        positions.push(insertion.resident_blocks);
    }

    /// Exactly this part went. [`Pair`] passes it on; a type that is both policies hears it as
    /// [`evicted`](EvictionPolicy::evicted).
    fn on_evicted(&mut self, _evicted: &Candidate) {}
}

/// Both halves: what the cache is driven by.
pub trait Policy: EvictionPolicy + AdmissionPolicy {}

impl<P: EvictionPolicy + AdmissionPolicy + ?Sized> Policy for P {}

/// An eviction and an admission policy, joined.
pub struct Pair {
    /// What goes.
    pub eviction: Box<dyn EvictionPolicy>,
    /// What comes in.
    pub admission: Box<dyn AdmissionPolicy>,
}

impl EvictionPolicy for Pair {
    fn offer(&mut self, candidate: &Candidate) {
        self.eviction.offer(candidate);
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.eviction.withdraw(id, why);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.eviction.victim()
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.eviction.evicted(evicted, whole);
        self.admission.on_evicted(evicted);
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.eviction.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        self.eviction.merge(head, tail, head_blocks);
    }

    fn wants_path_nodes(&self) -> bool {
        self.eviction.wants_path_nodes()
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.eviction.observe(request, nodes);
    }
}

impl AdmissionPolicy for Pair {
    fn needs_rival(&self) -> bool {
        self.admission.needs_rival()
    }

    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        self.admission.admit(request, rival)
    }

    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        positions: &mut Vec<u32>,
    ) {
        self.admission.checkpoints(request, insertion, positions);
    }
}

/// Time and arithmetic of a piece of prefill.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Seconds.
    pub seconds: f64,
    /// Floating-point operations.
    pub flops: f64,
}

/// What prefill costs: the cost model in force, as the cache and the policies need it.
pub trait PrefillCost {
    /// The work of prefilling a prompt of `total_tokens` of which the first `cached_tokens` are cached.
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work;

    /// What losing the tokens from `start_tokens` to `end_tokens` of a cached prefix adds to a prompt that goes on: the price of a
    /// leaf. What a pass costs whatever its length is in no leaf's price, because the prompt's own pass pays it in any case.
    fn marginal(&self, end_tokens: u64, start_tokens: u64) -> Work {
        self.prefill(end_tokens, start_tokens)
    }
}

/// Bytes of one saved state, by the depth at which it is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateBytes {
    /// At any depth: what state-space layers carry on.
    pub fixed: u64,
    /// For each of the last tokens: the KV of layers that look back through a window.
    pub per_token: u64,
    /// So many last tokens count.
    pub window_tokens: u64,
}

impl StateBytes {
    /// Bytes of the state that `tokens` lead to.
    pub fn at(&self, tokens: u64) -> u64 {
        self.fixed + self.per_token * tokens.min(self.window_tokens)
    }
}

/// A wrong answer of a policy. The cache goes on: the request's own fresh blocks go until it fits; in checkpoint models the
/// deepest candidate of the request's path, or else the first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFault {
    /// The victim is not evictable.
    NotEvictable(NodeId),
    /// The victim is to lose no block at all.
    NoBlocks(NodeId),
    /// No victim was named though nodes are evictable.
    NoVictim,
    /// The admission is outside `held..=path`.
    AdmissionOutOfRange {
        /// The answer.
        blocks: u32,
        /// The least right answer.
        held: u32,
        /// The greatest right answer.
        path: u32,
    },
    /// A state is to be saved outside the path.
    CheckpointOutOfRange {
        /// The depth, in blocks.
        blocks: u32,
        /// Blocks of the path.
        path: u32,
    },
}

impl core::fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotEvictable(id) => write!(f, "the victim, node {}, is not evictable", id.0),
            Self::NoBlocks(id) => write!(f, "of the victim, node {}, no block is to go", id.0),
            Self::NoVictim => write!(f, "no victim was named though nodes are evictable"),
            Self::AdmissionOutOfRange { blocks, held, path } => {
                write!(
                    f,
                    "{blocks} blocks were admitted where {held} are held and the path has {path}"
                )
            }
            Self::CheckpointOutOfRange { blocks, path } => write!(
                f,
                "a state is to be saved {blocks} blocks deep on a path of {path}"
            ),
        }
    }
}

/// A float with a total order (IEEE 754 `totalOrder`), for keys.
#[derive(Clone, Copy, Debug)]
pub struct Score(pub f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
