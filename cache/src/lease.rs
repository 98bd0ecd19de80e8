//! Leases: requests that overlap.

use std::error::Error;
use std::fmt;

use policy_api::{
    BlockId, Hints, NodeId, PathInsertion, Policy, Request, RequestIndex, WithdrawReason,
};

use crate::nodes::Touch;
use crate::room::Need;
use crate::{Cache, EvictUnit, Outcome};

/// A request under way, and what it holds of the cache.
///
/// A lease begins with [`Cache::lookup`] and ends with [`Cache::finish`] or [`Cache::abandon`]. In between any other requests may
/// begin and end. What a lease holds is not evicted:
///
/// - the leading blocks of its path that were resident when it was looked up;
/// - those that [`Cache::reserve`] made resident since, or found there because another request had brought them in;
/// - in checkpoint models also room for the states that it will save when it finishes.
///
/// Blocks that several leases hold are counted once.
///
/// A lease that is dropped without an end holds its blocks for ever; there is no `Drop`, because only the cache could give them
/// back. It is not `Clone`, so it ends only once.
#[must_use = "a lease that is neither finished nor abandoned holds its blocks for ever"]
#[derive(Debug)]
pub struct Lease {
    index: RequestIndex,
    request: Request,
    hints: Option<Hints>,
    /// Leading blocks of the path that it holds. A node ends there.
    resident_blocks: u32,
    /// How many the admission policy lets in, once it was asked.
    admitted_blocks: Option<u32>,
    diverges_inside_node: bool,
    /// Where to save states, in ascending order.
    checkpoint_depths: Vec<u32>,
    /// How many of them there is room for.
    reserved_states: usize,
    reserved_state_bytes: u64,
    outcome: Outcome,
}

impl Lease {
    /// The request's position in the trace.
    pub fn index(&self) -> RequestIndex {
        self.index
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Leading blocks of the path that it holds.
    pub fn resident_blocks(&self) -> u32 {
        self.resident_blocks
    }

    /// How many leading blocks of the path may be resident; unknown before the first reservation.
    pub fn admitted_blocks(&self) -> Option<u32> {
        self.admitted_blocks
    }

    /// What happened to the request so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// What others hold leaves too little room. Nothing was evicted for the reservation; it may succeed once another lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Bytes that the reservation takes.
    pub needed_bytes: u64,
    /// Bytes that are free or could be evicted.
    pub available_bytes: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            needed_bytes,
            available_bytes,
        } = self;
        write!(
            f,
            "no room: {needed_bytes} bytes are needed, {available_bytes} are free or evictable"
        )
    }
}

impl Error for NoRoom {}

/// A request that overlaps others.
///
/// Two prompts in a cache of three blocks. While the first runs there is no room for the second:
///
/// ```
/// use cache::{Cache, CacheConfig, EvictUnit};
/// use policy_api::*;
/// # #[derive(Default)] struct Any(Ranked<Tick>);
/// # impl EvictionPolicy for Any {
/// #     fn offer(&mut self, leaf: &Candidate) { self.0.put(leaf.id, leaf.last_used); }
/// #     fn withdraw(&mut self, id: NodeId, _: WithdrawReason) { self.0.remove(id); }
/// #     fn victim(&mut self) -> Option<Victim> { self.0.first().map(Victim::node) }
/// #     fn evicted(&mut self, part: &Candidate, _: bool) { self.0.remove(part.id); }
/// # }
/// # impl AdmissionPolicy for Any {
/// #     fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 { request.path.len() as u32 }
/// # }
/// # struct Free;
/// # impl PrefillCost for Free { fn prefill(&self, _: u64, _: u64) -> Work { Work::default() } }
/// # let config = CacheConfig {
/// #     capacity_bytes: 3, block_bytes: 1, block_tokens: 16, evict_unit: EvictUnit::Block, state: None,
/// # };
/// # let mut policy = Any::default();
/// let arena = [0, 1, 2, 3].map(BlockId);
/// let first = Request { path_start: 0, path_blocks: 2, prompt_tokens: 33, ..Request::default() };
/// let second = Request { path_start: 2, ..first };
/// let mut cache = Cache::new(config, &arena, 4, &Free);
///
/// let mut one = cache.lookup(RequestIndex(0), &first, None, &mut policy);
/// cache.reserve(&mut one, 2, &mut policy)?;
/// let mut two = cache.lookup(RequestIndex(1), &second, None, &mut policy);
/// cache.reserve(&mut two, 1, &mut policy)?;
/// assert_eq!(cache.reserve(&mut two, 2, &mut policy).unwrap_err().available_bytes, 0);
///
/// cache.finish(one, &mut policy);
/// cache.reserve(&mut two, 2, &mut policy)?;
/// assert_eq!(cache.finish(two, &mut policy).counters.evicted_blocks, 1);
/// # Ok::<(), cache::NoRoom>(())
/// ```
impl Cache<'_> {
    /// Begins a request: finds what is resident of its path and holds it, and shows the request to the policy.
    ///
    /// `hints` are those that the policy may read. Unlike [`serve`](Self::serve) this does not look at `request.seen_blocks`,
    /// because requests that overlap may be looked up in any order, and more than once.
    pub fn lookup(
        &mut self,
        index: RequestIndex,
        request: &Request,
        hints: Option<&Hints>,
        policy: &mut dyn Policy,
    ) -> Lease {
        self.present = index;
        let path = self.path(request);
        let held_blocks = self.held_blocks(path);
        let reaccessed_blocks = self.note_reaccessed(&path[held_blocks as usize..]);
        if self.config.evict_unit != EvictUnit::Block {
            let usable_blocks = request.usable_blocks(self.config.block_tokens);
            self.end_node_at_lease(path, usable_blocks.min(held_blocks), policy);
        }
        let diverges_inside_node = self.end_node_at_lease(path, held_blocks, policy);
        let hit_blocks = self.usable_hit(request, held_blocks);
        let outcome = self.found(request, held_blocks, hit_blocks, reaccessed_blocks);
        let view = self.view(request, hints, &outcome);
        self.observe(&view, policy);
        self.pin_path(0, WithdrawReason::Used, policy);
        self.end_event();
        Lease {
            index,
            request: *request,
            hints: hints.copied(),
            resident_blocks: held_blocks,
            admitted_blocks: None,
            diverges_inside_node,
            checkpoint_depths: Vec::new(),
            reserved_states: 0,
            reserved_state_bytes: 0,
            outcome,
        }
    }

    /// Makes the first `depth_blocks` blocks of the path resident, as far as the admission policy lets them in, and holds them: for
    /// the whole path at once, or chunk by chunk as it is computed. The policy is asked at the first reservation. Room is made
    /// before the blocks come in, so a request does not evict its own.
    ///
    /// # Errors
    /// [`NoRoom`] where what other leases and pins hold leaves too little. The lease is as good as before.
    pub fn reserve(
        &mut self,
        lease: &mut Lease,
        depth_blocks: u32,
        policy: &mut dyn Policy,
    ) -> Result<(), NoRoom> {
        self.present = lease.index;
        let admitted = self.admit_lease(lease, policy);
        let goal = depth_blocks.min(admitted);
        self.share(lease, goal, policy);
        let result = self.extend(lease, goal, policy);
        self.end_event();
        result
    }

    /// Ends a request that ran: all that its lease holds was computed and stays, as used by it just now, until it is evicted.
    pub fn finish(&mut self, lease: Lease, policy: &mut dyn Policy) -> Outcome {
        self.present = lease.index;
        let path = self.path(&lease.request);
        let mut outcome = lease.outcome;
        self.find_path_nodes(path, lease.resident_blocks);
        let touch = self.first_touch(&lease.request);
        if self.config.state.is_none() {
            self.touch_path(touch);
        } else {
            let resumed = self.node_at(path, outcome.counters.hit_blocks as u32);
            self.touch_resumed(resumed, touch);
            outcome.counters.saved_states = Some(self.save_leased(&lease, touch, policy));
        }
        self.release(last_block(path, &lease), policy);
        self.end_event();
        outcome
    }

    /// Ends a request that is given up: as if it had not come. Its use of shared blocks does not count. Blocks that it brought in are
    /// dropped, unless another request finished with them, or still holds them and will decide. To keep what a preempted request
    /// has computed, [`finish`](Self::finish) it instead.
    pub fn abandon(&mut self, lease: Lease, policy: &mut dyn Policy) -> Outcome {
        self.present = lease.index;
        self.reserved_state_bytes -= lease.reserved_state_bytes;
        let path = self.path(&lease.request);
        self.release(last_block(path, &lease), policy);
        self.end_event();
        lease.outcome
    }

    /// Makes a node end where the lease does, and collects the nodes above. Returns whether one had to be split.
    fn end_node_at_lease(&mut self, path: &[BlockId], depth: u32, policy: &mut dyn Policy) -> bool {
        let split = self.split_at(path, depth, policy);
        if let Some(split) = split {
            self.nodes[split.head].ends_pin = true;
        }
        self.find_path_nodes(path, depth);
        if self.config.evict_unit == EvictUnit::LeafSglang {
            // SGLang stamps whatever a look-up matches.
            let path_nodes = std::mem::take(&mut self.path_nodes);
            path_nodes.iter().for_each(|id| self.stamp(*id));
            self.path_nodes = path_nodes;
        }
        split.is_some()
    }

    fn usable_hit(&self, request: &Request, held_blocks: u32) -> u32 {
        match self.config.state {
            None => held_blocks.min(request.usable_blocks(self.config.block_tokens)),
            Some(_) => self.end_of(self.deepest_state(request)),
        }
    }

    /// Asks the admission policy, unless it was asked before.
    fn admit_lease(&mut self, lease: &mut Lease, policy: &mut dyn Policy) -> u32 {
        if let Some(admitted) = lease.admitted_blocks {
            return admitted;
        }
        let view = self.view(&lease.request, lease.hints.as_ref(), &lease.outcome);
        let admitted = self.admit(&view, policy);
        if self.config.state.is_some() {
            let insertion = PathInsertion {
                resident_blocks: admitted,
                diverges_inside_node: lease.diverges_inside_node,
            };
            self.choose_checkpoint_depths(&view, insertion, policy);
            lease.checkpoint_depths.clone_from(&self.checkpoint_depths);
        }
        lease.outcome.counters.rejected_blocks = u64::from(lease.request.path_blocks - admitted);
        lease.admitted_blocks = Some(admitted);
        admitted
    }

    /// Holds what others made resident of the path since the lease last looked.
    fn share(&mut self, lease: &mut Lease, goal: u32, policy: &mut dyn Policy) {
        let path = self.path(&lease.request);
        let held_blocks = self.held_blocks(&path[..goal as usize]);
        if held_blocks <= lease.resident_blocks {
            return;
        }
        let former_end = self.node_at(path, lease.resident_blocks);
        self.end_node_at_lease(path, held_blocks, policy);
        self.pin_path(lease.resident_blocks, WithdrawReason::Used, policy);
        lease.resident_blocks = held_blocks;
        if let Some(id) = former_end {
            // The lease does not end there any more, so nothing may.
            self.merge_or_offer(id, policy);
        }
    }

    /// Makes room for what is missing of the path, and brings it in.
    fn extend(
        &mut self,
        lease: &mut Lease,
        goal: u32,
        policy: &mut dyn Policy,
    ) -> Result<(), NoRoom> {
        let fresh_blocks = goal.saturating_sub(lease.resident_blocks);
        let due = self.states_due(lease, goal);
        let need = Need {
            blocks: u64::from(fresh_blocks),
            state_bytes: due.bytes,
        };
        let needed_bytes = self.bytes_of(need);
        let available_bytes = self.available_bytes();
        if needed_bytes > available_bytes {
            return Err(NoRoom {
                needed_bytes,
                available_bytes,
            });
        }
        // All of this request's path is held, so a policy that names no candidate gets the first of all evicted.
        self.path_nodes.clear();
        let freed = self.make_room(need, policy);
        lease.reserved_states += due.count;
        lease.reserved_state_bytes += due.bytes;
        self.reserved_state_bytes += due.bytes;
        if fresh_blocks > 0 {
            self.bring_in(lease, goal);
        }
        lease.outcome.counters.admitted_blocks += u64::from(fresh_blocks);
        freed.count(&mut lease.outcome.counters);
        Ok(())
    }

    /// Bytes that no lease or pin holds.
    fn available_bytes(&self) -> u64 {
        let held_bytes = self.pinned_blocks * self.config.block_bytes
            + self.pinned_state_bytes
            + self.reserved_state_bytes;
        self.config.capacity_bytes.saturating_sub(held_bytes)
    }

    /// The states that the request will save down to a depth, and that there is no room for yet.
    fn states_due(&self, lease: &Lease, goal: u32) -> StatesDue {
        let Some(state) = self.config.state else {
            return StatesDue::default();
        };
        let path = self.path(&lease.request);
        let depths = &lease.checkpoint_depths[lease.reserved_states..];
        let due = depths.iter().take_while(|depth| **depth <= goal);
        let new = due.clone().filter(|depth| !self.is_saved_at(path, **depth));
        StatesDue {
            count: due.count(),
            bytes: new.map(|depth| state.at(self.tokens(*depth))).sum(),
        }
    }

    fn is_saved_at(&self, path: &[BlockId], depth: u32) -> bool {
        let id = self.node_at(path, depth);
        let node = id.and_then(|id| self.nodes.get(id));
        node.is_some_and(|node| node.has_state && node.end_blocks() == depth)
    }

    /// Makes the path resident down to `goal`: as a longer last node where the lease alone holds that, so that a path that is
    /// computed in chunks is not one node per chunk; else as a new node.
    fn bring_in(&mut self, lease: &mut Lease, goal: u32) {
        let (path_start, from) = (lease.request.path_start, lease.resident_blocks);
        let last = self.node_at(self.path(&lease.request), from);
        match last.filter(|id| self.is_mine_alone(*id)) {
            Some(id) => {
                let node = &mut self.nodes[id];
                // The same blocks, in a path that goes on as this one does.
                node.start = path_start + node.depth_blocks as usize;
                node.blocks = goal - node.depth_blocks;
                let stretch = node.start..node.start + node.blocks as usize;
                self.own(stretch, id);
                self.used_blocks += u64::from(goal - from);
            }
            None => {
                let touch = Touch {
                    uses: 0,
                    ..self.first_touch(&lease.request)
                };
                let id = self.append(last, path_start, from..goal, touch);
                self.nodes[id].pins = 1;
            }
        }
        self.pinned_blocks += u64::from(goal - from);
        lease.resident_blocks = goal;
    }

    /// Whether only the lease whose path ends with this node holds it, and nobody ever finished with it.
    fn is_mine_alone(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        node.is_provisional() && node.pins == 1 && node.children == 0
    }

    /// Saves the states that there is room for. Another request may have saved some of them in the meantime.
    fn save_leased(&mut self, lease: &Lease, touch: Touch, policy: &mut dyn Policy) -> u64 {
        self.reserved_state_bytes -= lease.reserved_state_bytes;
        let mut saved = 0;
        for &depth in &lease.checkpoint_depths[..lease.reserved_states] {
            let id = self.end_node_at(&lease.request, depth, policy);
            saved += u64::from(self.save_state(id, touch));
        }
        saved
    }
}

#[derive(Clone, Copy, Default)]
struct StatesDue {
    count: usize,
    bytes: u64,
}

fn last_block(path: &[BlockId], lease: &Lease) -> Option<BlockId> {
    let last = lease.resident_blocks.checked_sub(1)?;
    Some(path[last as usize])
}
