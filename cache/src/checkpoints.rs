//! The step of one request where a prompt resumes only from a saved state: hybrid and sliding-window models.
//!
//! Each letter is a block of KV, `*` a state saved at the end of a node. One request asked for `abcd` and saved a state at its end.
//! The second asks for `abxy`, under an admission policy that saves where paths part and where they end:
//!
//! ```text
//!     before      split       admit, save       room for two states only
//!
//!     abcd*       ab          ab*               abxy*
//!                 |          /   \
//!                 cd*      cd*   xy*
//! ```
//!
//! - **Split**: `ab` is held, but nobody saved a state there, so nothing hits. The head of a split never has a state.
//! - **Save**: the request computes `ab` again and can save a state at its end now, and another at `y`.
//! - **Evict**: the candidates are the leaves `cd*` and `xy*`, each with its KV and state. The state of `ab` becomes one when it
//!   has a single child. Under LRU `cd*` is evicted, then the state of `ab`; what is left of `ab` is merged with `xy*`.
//!
//! The rules:
//!
//! - A hit ends at the deepest state at or above the match.
//! - A hit updates the facts of the state that it resumes from, and of states that it saves once more. States above stay as they
//!   are, because the request did not read them.
//! - The facts of a node are those of the state at its end. A leaf without one has those of the request that brought it in.
//! - A node ends where a state was saved, where paths part, or where a path ends.

use policy_api::{
    Hints, NodeId, PathInsertion, Policy, PolicyFault, Request, RequestView, WithdrawReason,
};

use crate::Cache;
use crate::nodes::Touch;
use crate::room::Need;
use crate::step::Outcome;
use crate::tree::Split;

impl Cache<'_> {
    pub(crate) fn serve_at_checkpoints(
        &mut self,
        request: &Request,
        hints: Option<&Hints>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        let path = self.path(request);
        let seen = &path[..request.seen_blocks.min(request.path_blocks) as usize];
        let held_blocks = self.held_blocks(seen);
        let reaccessed_blocks = self.note_reaccessed(&seen[held_blocks as usize..]);
        let split = self.split_at(path, held_blocks, policy);
        self.find_path_nodes(path, held_blocks);
        let resumed = self.deepest_state(request);
        let hit_blocks = self.end_of(resumed);
        let mut outcome = self.found(request, held_blocks, hit_blocks, reaccessed_blocks);

        let view = self.view(request, hints, &outcome);
        self.observe(&view, policy);
        let touch = self.first_touch(request);
        self.withdraw_path(policy);
        self.touch_resumed(resumed, touch);
        let admitted = self.admit(&view, policy);
        let insertion = PathInsertion {
            resident_blocks: admitted,
            diverges_inside_node: split.is_some(),
        };
        self.choose_checkpoint_depths(&view, insertion, policy);
        let saved_states = self.insert_and_save(request, held_blocks, admitted, touch, policy);
        self.find_path_nodes(path, admitted);
        self.merge_or_offer_path(policy);
        self.offer_anew(split, policy);
        let freed = self.make_room(Need::default(), policy);
        outcome.counters.admitted_blocks = u64::from(admitted - held_blocks);
        outcome.counters.rejected_blocks = u64::from(request.path_blocks - admitted);
        outcome.counters.saved_states = Some(saved_states);
        freed.count(&mut outcome.counters);
        outcome
    }

    /// The deepest node of the path from whose state the request can resume: one token is left to compute.
    pub(crate) fn deepest_state(&self, request: &Request) -> Option<NodeId> {
        let usable_blocks = request.usable_blocks(self.config.block_tokens);
        let usable = |id: &&NodeId| {
            let node = &self.nodes[**id];
            node.has_state && node.end_blocks() <= usable_blocks
        };
        self.path_nodes.iter().rev().find(usable).copied()
    }

    pub(crate) fn end_of(&self, node: Option<NodeId>) -> u32 {
        node.map_or(0, |id| self.nodes[id].end_blocks())
    }

    /// Nothing on the path is evictable while the request is served.
    fn withdraw_path(&mut self, policy: &mut dyn Policy) {
        for &id in &self.path_nodes {
            if std::mem::take(&mut self.nodes[id].evictable) {
                policy.withdraw(id, WithdrawReason::Used);
            }
        }
    }

    /// One use more for the state that the request resumed from. What overlapping requests have not finished yet is computed now,
    /// whatever becomes of them.
    pub(crate) fn touch_resumed(&mut self, resumed: Option<NodeId>, fresh: Touch) {
        for &id in &self.path_nodes {
            let node = &mut self.nodes[id];
            if Some(id) == resumed || node.is_provisional() {
                node.touch = node.touch.used_again(fresh);
            }
        }
    }

    /// Asks where to save, and keeps what can be saved: below the hit, down to what is resident.
    pub(crate) fn choose_checkpoint_depths(
        &mut self,
        view: &RequestView<'_>,
        insertion: PathInsertion,
        policy: &mut dyn Policy,
    ) {
        // Taken out, because reporting a fault borrows the whole cache; put back, to keep the allocation.
        let mut depths = std::mem::take(&mut self.checkpoint_depths);
        depths.clear();
        policy.checkpoints(view, insertion, &mut depths);
        let path = view.path.len() as u32;
        if let Some(&blocks) = depths.iter().find(|blocks| **blocks > path) {
            self.fault(PolicyFault::CheckpointOutOfRange { blocks, path });
        }
        depths.retain(|blocks| (view.hit_blocks + 1..=insertion.resident_blocks).contains(blocks));
        depths.sort_unstable();
        depths.dedup();
        self.checkpoint_depths = depths;
    }

    /// Saves the states, and makes what is fresh of the path resident, in nodes that end where one is saved.
    fn insert_and_save(
        &mut self,
        request: &Request,
        held_blocks: u32,
        admitted: u32,
        touch: Touch,
        policy: &mut dyn Policy,
    ) -> u64 {
        // Taken out and put back, because saving borrows the whole cache.
        let depths = std::mem::take(&mut self.checkpoint_depths);
        let mut saved = 0;
        let mut parent = self.path_nodes.last().copied();
        let mut reached = held_blocks;
        for &depth in &depths {
            let end = if depth <= held_blocks {
                self.end_node_at(request, depth, policy)
            } else {
                let id = self.append(parent, request.path_start, reached..depth, touch);
                reached = depth;
                parent = Some(id);
                id
            };
            // The memory of a state on a pinned node could not be had back for this newcomer, so it is not saved there.
            if self.nodes[end].pins == 0 || self.nodes[end].has_state {
                saved += u64::from(self.save_state(end, touch));
            }
        }
        if reached < admitted {
            self.append(parent, request.path_start, reached..admitted, touch);
        }
        self.checkpoint_depths = depths;
        saved
    }

    /// The node that ends so deep on the path, which is split if none does.
    pub(crate) fn end_node_at(
        &mut self,
        request: &Request,
        depth: u32,
        policy: &mut dyn Policy,
    ) -> NodeId {
        let block = self.arena[request.path_start + depth as usize - 1];
        let id = NodeId(self.owner[block.index()]);
        let node = &self.nodes[id];
        if node.end_blocks() == depth {
            return id;
        }
        let head_blocks = depth - node.depth_blocks;
        self.split(id, head_blocks, policy)
    }

    /// Saves a state at the end of a node, anew if there was one. Returns whether there is one more.
    pub(crate) fn save_state(&mut self, id: NodeId, touch: Touch) -> bool {
        let node = &mut self.nodes[id];
        if node.has_state {
            if node.touch.last_used != touch.last_used {
                node.touch = node.touch.used_again(touch);
            }
            return false;
        }
        node.has_state = true;
        node.touch = touch;
        let is_pinned = node.pins > 0;
        let bytes = self.bytes_of_state(id);
        self.state_bytes += bytes;
        if is_pinned {
            self.pinned_state_bytes += bytes;
        }
        true
    }

    fn merge_or_offer_path(&mut self, policy: &mut dyn Policy) {
        // Taken out, because merging borrows the whole cache; put back, because eviction looks at it after a fault.
        let path_nodes = std::mem::take(&mut self.path_nodes);
        for &id in &path_nodes {
            self.merge_or_offer(id, policy);
        }
        self.path_nodes = path_nodes;
    }

    /// What was split off was offered when there was no state yet where it was split. If one was saved there, less is lost with it.
    /// Only after merging, because that may have made one node of both again.
    fn offer_anew(&mut self, split: Option<Split>, policy: &mut dyn Policy) {
        if let Some(Split { tail, .. }) = split
            && self.is_evictable(tail)
        {
            policy.offer(&self.candidate(tail));
        }
    }
}
