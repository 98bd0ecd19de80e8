//! The step of one request where a prompt resumes only from a saved state: hybrid and sliding-window models.
//!
//! A node may have a state at its end. The usable hit is the deepest one at or above the match. A hit refreshes only the
//! state that it consumed, and a split leaves the new head without one, because nobody was there to save it. A node ends
//! where a state was saved, where paths part, or where the path ends: one that has a single child and no state is merged
//! with it.

use policy_api::{
    Candidate, CandidateKind, Hints, NodeId, PathInsertion, Policy, PolicyFault, Request,
    RequestView, StateBytes, WithdrawReason, Work,
};

use crate::nodes::Touch;
use crate::step::{Outcome, first_touch, view};
use crate::{Cache, Counters, EVICTED};

impl Cache<'_> {
    pub(crate) fn serve_at_checkpoints(
        &mut self,
        index: u32,
        request: &Request,
        hints: Option<&Hints>,
        state: StateBytes,
        policy: &mut dyn Policy,
    ) -> Outcome {
        let path = &self.arena[request.path_range()];
        let seen = &path[..request.seen_blocks.min(request.path_blocks) as usize];
        let held_blocks = self.held_blocks(seen);
        let reaccessed_blocks = self.note_reaccessed(&seen[held_blocks as usize..]);
        let split_off = self.split_at(path, held_blocks, index, policy);
        self.find_path_nodes(path, held_blocks);
        let resumed = self.deepest_state(request.usable_blocks(self.config.block_tokens));
        let hit_blocks = resumed.map_or(0, |id| self.nodes[id].end_blocks());
        let hit_tokens = self.tokens(hit_blocks);
        let prefill = self
            .cost
            .prefill(u64::from(request.prompt_tokens), hit_tokens);

        let held_and_hit = (held_blocks, hit_blocks);
        let view = view(index, request, path, held_and_hit, prefill, hints);
        self.observe(&view, policy);
        self.withdraw_path(policy);
        let touch = first_touch(&view);
        if let Some(id) = resumed {
            self.use_state(id, touch);
        }
        let admitted = self.admit(&view, policy);
        let insertion = PathInsertion {
            resident_blocks: admitted,
            diverges_inside_node: split_off.is_some(),
        };
        self.choose_checkpoint_depths(&view, insertion, policy);
        let saved_states = self.pass(request.path_start, held_blocks, admitted, touch, policy);
        self.find_path_nodes(path, admitted);
        self.merge_or_offer_path(policy);
        self.offer_anew(split_off, policy);
        let evicted = self.make_room_for_states(index, state, policy);
        self.audit_in_debug_builds(index);
        Outcome {
            held_blocks,
            prefill,
            counters: Counters {
                hit_blocks: u64::from(hit_blocks),
                admitted_blocks: u64::from(admitted - held_blocks),
                rejected_blocks: u64::from(request.path_blocks - admitted),
                evicted_blocks: u64::from(evicted.blocks),
                reaccessed_blocks: u64::from(reaccessed_blocks),
                saved_states: Some(u64::from(saved_states)),
                evicted_states: Some(u64::from(evicted.states)),
            },
        }
    }

    /// The deepest node on the path_nodes with a state that is at most so deep.
    fn deepest_state(&self, usable_blocks: u32) -> Option<NodeId> {
        let usable = |id: &&NodeId| {
            let node = &self.nodes[**id];
            node.has_state && node.end_blocks() <= usable_blocks
        };
        self.path_nodes.iter().rev().find(usable).copied()
    }

    /// What the path nodes through is not evictable while the request is served.
    fn withdraw_path(&mut self, policy: &mut dyn Policy) {
        for &id in &self.path_nodes {
            if std::mem::take(&mut self.nodes[id].evictable) {
                policy.withdraw(id, WithdrawReason::Used);
            }
        }
    }

    fn use_state(&mut self, id: NodeId, fresh: Touch) {
        let touch = &mut self.nodes[id].touch;
        *touch = Touch {
            created: touch.created,
            uses: touch.uses + 1,
            ..fresh
        };
    }

    /// Asks where to save, and keeps what can be: below the hit, down to what is resident.
    fn choose_checkpoint_depths(
        &mut self,
        view: &RequestView<'_>,
        insertion: PathInsertion,
        policy: &mut dyn Policy,
    ) {
        self.checkpoint_depths.clear();
        let mut checkpoint_depths = std::mem::take(&mut self.checkpoint_depths);
        policy.checkpoints(view, insertion, &mut checkpoint_depths);
        let path = view.path.len() as u32;
        if let Some(&blocks) = checkpoint_depths.iter().find(|blocks| **blocks > path) {
            self.fault(
                view.index,
                PolicyFault::CheckpointOutOfRange { blocks, path },
            );
        }
        checkpoint_depths
            .retain(|blocks| (view.hit_blocks + 1..=insertion.resident_blocks).contains(blocks));
        checkpoint_depths.sort_unstable();
        checkpoint_depths.dedup();
        self.checkpoint_depths = checkpoint_depths;
    }

    /// Saves the states, and makes what is fresh of the path resident in nodes that end where one is saved.
    fn pass(
        &mut self,
        path_start: usize,
        held_blocks: u32,
        admitted: u32,
        touch: Touch,
        policy: &mut dyn Policy,
    ) -> u32 {
        let checkpoint_depths = std::mem::take(&mut self.checkpoint_depths);
        let mut saved = 0;
        let mut parent = self.path_nodes.last().copied();
        let mut reached = held_blocks;
        for &depth in &checkpoint_depths {
            let end = if depth <= held_blocks {
                self.end_node_at(path_start, depth, policy)
            } else {
                let id = self.append(parent, path_start, reached..depth, touch);
                reached = depth;
                parent = Some(id);
                id
            };
            saved += u32::from(self.save_state(end, touch));
        }
        if reached < admitted {
            self.append(parent, path_start, reached..admitted, touch);
        }
        self.checkpoint_depths = checkpoint_depths;
        saved
    }

    /// The node that ends so deep on the path, which is split if none does.
    fn end_node_at(&mut self, path_start: usize, depth: u32, policy: &mut dyn Policy) -> NodeId {
        let block = self.arena[path_start + depth as usize - 1];
        let id = NodeId(self.owner[block as usize]);
        let node = &self.nodes[id];
        if node.end_blocks() == depth {
            return id;
        }
        let head_blocks = depth - node.depth_blocks;
        self.split(id, head_blocks, policy)
    }

    /// Saves a state at the end of a node, anew if there was one. A pinned node keeps what it has: its memory cannot be
    /// had back for a newcomer. Returns whether there is one more.
    fn save_state(&mut self, id: NodeId, touch: Touch) -> bool {
        let node = &mut self.nodes[id];
        if node.has_state {
            if node.touch.last_used != touch.last_used {
                self.use_state(id, touch);
            }
            return false;
        }
        if node.pins > 0 {
            return false;
        }
        node.has_state = true;
        node.touch = touch;
        self.state_bytes += self.bytes_of_state(id);
        true
    }

    fn bytes_of_state(&self, id: NodeId) -> u64 {
        let tokens = self.tokens(self.nodes[id].end_blocks());
        self.config.state.map_or(0, |state| state.at(tokens))
    }

    /// What was split_at off has a state nearer above it if one was saved where it was split_at.
    fn offer_anew(&mut self, split_off: Option<NodeId>, policy: &mut dyn Policy) {
        if let Some(id) = split_off
            && self.nodes[id].evictable
        {
            policy.offer(&self.candidate(id));
        }
    }

    fn merge_or_offer_path(&mut self, policy: &mut dyn Policy) {
        let path_nodes = std::mem::take(&mut self.path_nodes);
        for &id in &path_nodes {
            self.merge_or_offer(id, policy);
        }
        self.path_nodes = path_nodes;
    }

    /// Offers a node that may go, or merges it with its child where nothing ends there.
    pub(crate) fn merge_or_offer(&mut self, id: NodeId, policy: &mut dyn Policy) {
        if self.config.state.is_none() || self.nodes[id].children == 0 {
            return self.offer_if_leaf(id, policy);
        }
        let node = &self.nodes[id];
        let Some(child) = node.only_child() else {
            return;
        };
        if node.has_state && node.pins == 0 {
            self.nodes[id].evictable = true;
            policy.offer(&self.candidate(id));
        } else if !node.has_state && node.pins == self.nodes[child].pins {
            self.merge(id, child, policy);
        }
    }

    /// Makes one node of a node and its only child, whose id and history stay.
    fn merge(&mut self, head: NodeId, tail: NodeId, policy: &mut dyn Policy) {
        let above = self.nodes[head];
        for &block in &self.arena[above.start..above.start + above.blocks as usize] {
            self.owner[block as usize] = tail.0;
        }
        let node = &mut self.nodes[tail];
        // A path that holds the tail's blocks holds the head's right before them.
        node.start -= above.blocks as usize;
        node.depth_blocks = above.depth_blocks;
        node.blocks += above.blocks;
        node.parent = above.parent;
        if let Some(parent) = above.parent {
            self.nodes[parent].children_xor ^= head.0 ^ tail.0;
        }
        self.nodes.remove(head);
        policy.merge(head, tail, above.blocks);
        if self.nodes[tail].evictable {
            policy.offer(&self.candidate(tail));
        }
    }

    /// Evicts whole candidates until the cache fits.
    fn make_room_for_states(
        &mut self,
        index: u32,
        state: StateBytes,
        policy: &mut dyn Policy,
    ) -> Evicted {
        let mut evicted = Evicted::default();
        while self.used_bytes() > self.config.capacity_bytes {
            let id = match self.ask_victim(policy) {
                Ok((id, _)) => id,
                Err(fault) => {
                    self.fault(index, fault);
                    self.own_candidate()
                }
            };
            self.evict_whole(id, state, &mut evicted, policy);
        }
        evicted
    }

    /// What goes when a policy answers wrongly: the deepest of the request's own that may, else the first of all.
    fn own_candidate(&self) -> NodeId {
        let evictable = |id: &&NodeId| self.nodes.get(**id).is_some_and(|node| node.evictable);
        let own = self.path_nodes.iter().rev().find(evictable).copied();
        let first = || self.nodes.live().find(|(_, node)| node.evictable);
        own.or_else(|| first().map(|(id, _)| id))
            .expect("what overflows is not pinned, and below it is a leaf that is not")
    }

    fn evict_whole(
        &mut self,
        id: NodeId,
        state: StateBytes,
        evicted: &mut Evicted,
        policy: &mut dyn Policy,
    ) {
        let mut part = self.checkpoint_candidate(id, state);
        let node = self.nodes[id];
        let is_leaf = node.children == 0;
        if !is_leaf {
            part.blocks = 0;
        }
        if node.has_state {
            self.state_bytes -= self.bytes_of_state(id);
            self.nodes[id].has_state = false;
            evicted.states += 1;
        }
        self.nodes[id].evictable = false;
        policy.evicted(&part, is_leaf);
        if let Some(child) = node.only_child() {
            return self.merge(id, child, policy);
        }
        for &block in &self.arena[node.start..node.start + node.blocks as usize] {
            self.owner[block as usize] = EVICTED;
        }
        self.used_blocks -= u64::from(node.blocks);
        evicted.blocks += node.blocks;
        self.nodes.remove(id);
        if let Some(parent) = node.parent {
            self.nodes.remove_child(parent, id);
            self.merge_or_offer(parent, policy);
        }
    }

    /// The facts of a node, or of the state at its end.
    pub(crate) fn checkpoint_candidate(&self, id: NodeId, state: StateBytes) -> Candidate {
        let node = &self.nodes[id];
        let of_state = match node.has_state {
            true => state.at(self.tokens(node.end_blocks())),
            false => 0,
        };
        let base_blocks = self.state_above(id);
        let whole = self.unpriced_part(id, node, 0);
        let (kind, of_blocks) = match node.children {
            0 => (CandidateKind::Leaf, whole.bytes),
            _ => (CandidateKind::State, 0),
        };
        Candidate {
            base_blocks,
            kind,
            bytes: of_blocks + of_state,
            recompute: match node.has_state {
                true => self.prefill_blocks(node.end_blocks(), base_blocks),
                false => Work::default(),
            },
            ..whole
        }
    }

    /// Depth of the nearest state above a node.
    fn state_above(&self, id: NodeId) -> u32 {
        let mut next = self.nodes[id].parent;
        while let Some(above) = next {
            let node = &self.nodes[above];
            if node.has_state {
                return node.end_blocks();
            }
            next = node.parent;
        }
        0
    }
}

/// What evictions took.
#[derive(Clone, Copy, Debug, Default)]
struct Evicted {
    blocks: u32,
    states: u32,
}
