//! The two halves of a policy, and both joined.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{Candidate, NodeId, RequestView, Victim, WithdrawReason};

/// Says which node is evicted when the cache is over its capacity.
pub trait EvictionPolicy {
    /// The node may be chosen from now on. An offer of a node that is evictable replaces the former one.
    fn offer(&mut self, candidate: &Candidate);

    /// The node may no longer be chosen.
    fn withdraw(&mut self, id: NodeId, why: WithdrawReason);

    /// What should be evicted first; `None` only when nothing is evictable.
    ///
    /// Being asked changes nothing: asked twice without a call between, the answer is the same, and the cache may ask
    /// without evicting.
    fn victim(&mut self) -> Option<Victim>;

    /// Exactly this part was evicted: blocks from the tail of a node, or the `whole` node, whose id is then dead. A node that lost
    /// only its state lost no block (`evicted.blocks` is 0); it is merged with its child right after.
    ///
    /// What is left of the node, or a parent that became a leaf, is offered next. A node that was never offered is evicted where
    /// the request that brought it in was abandoned.
    fn evicted(&mut self, evicted: &Candidate, whole: bool);

    /// A node was split in two. `tail`, the lower part, keeps its id; `head` is a new id that starts with the same history.
    fn split(&mut self, _head: NodeId, _tail: NodeId) {}

    /// Checkpoint models: a node without a state was merged with its only child. The child, `tail`, keeps its id and history and
    /// takes in the `head_blocks` of the other, whose id is dead. If the tail is evictable, it is offered again.
    fn merge(&mut self, _head: NodeId, _tail: NodeId, _head_blocks: u32) {}

    /// Whether [`observe`](Self::observe) should be given the nodes on the path.
    fn wants_path_nodes(&self) -> bool {
        false
    }

    /// Called once per request, before anything of it is offered. `nodes` are the resident nodes on its path from the root, with
    /// their facts as they were before this request; empty unless [wanted](Self::wants_path_nodes).
    fn observe(&mut self, _request: &RequestView<'_>, _nodes: &[Candidate]) {}
}

/// How a path lies in the tree of a checkpoint model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInsertion {
    /// Leading blocks of the path that are resident once it is admitted.
    pub resident_blocks: u32,
    /// Whether the path left an existing node between its ends, `held_blocks` deep.
    pub diverges_inside_node: bool,
}

/// Says how much of a path may be resident.
pub trait AdmissionPolicy {
    /// Whether [`admit`](Self::admit) should be given the node that would be evicted first.
    fn needs_rival(&self) -> bool {
        false
    }

    /// How many leading blocks of the path may be resident: from `request.held_blocks` to the whole path.
    ///
    /// Called once per request, also when nothing of it is fresh, after `observe` and before room is made. `rival` is the
    /// node that would be evicted first, never one on the request's own path.
    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32;

    /// Checkpoint models: adds to `depths`, counted in blocks, where the request should save a state.
    ///
    /// A request passes every depth below its hit, and can save at any of them that is resident afterwards. Other depths are
    /// ignored; one beyond the path is a fault. By default a request saves
    ///
    /// - where its path leaves a node between its ends, so that others which share that prefix resume there;
    /// - where its prompt ends, as far as that is resident: a request that words the answer differently resumes there;
    /// - where what is resident ends: a request that continues this one resumes there.
    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        depths: &mut Vec<u32>,
    ) {
        if insertion.diverges_inside_node {
            depths.push(request.held_blocks);
        }
        depths.push(request.prompt_blocks.min(insertion.resident_blocks));
        depths.push(insertion.resident_blocks);
    }

    /// Exactly this part was evicted. [`Pair`] passes it on; a type that is both policies hears it as
    /// [`evicted`](EvictionPolicy::evicted).
    fn on_evicted(&mut self, _evicted: &Candidate) {}
}

/// Both halves: what the cache is driven by.
pub trait Policy: EvictionPolicy + AdmissionPolicy {}

impl<P: EvictionPolicy + AdmissionPolicy + ?Sized> Policy for P {}

/// An eviction and an admission policy, joined.
pub struct Pair {
    /// What evicts.
    pub eviction: Box<dyn EvictionPolicy>,
    /// What admits.
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
        depths: &mut Vec<u32>,
    ) {
        self.admission.checkpoints(request, insertion, depths);
    }
}
