//! The step of one request where a prompt resumes only from a saved state: hybrid and sliding-window models.
//!
//! A run may have a state at its end. The usable hit is the deepest one at or above the match. A hit refreshes only the
//! state that it consumed, and a split leaves the new head without one, because nobody was there to save it. A run ends
//! where a state was saved, where paths part, or where the path ends: one that has a single child and no state is merged
//! with it.

use policy_api::{
    Candidate, Frees, Hints, Passage, Policy, PolicyFault, Request, RequestView, RunId, StateBytes,
    Why, Work,
};

use crate::runs::Touch;
use crate::step::{Outcome, first_touch, view};
use crate::{Cache, EVICTED};

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
        let rewanted_blocks = self.note_rewanted(&seen[held_blocks as usize..]);
        let cut_off = self.cut(path, held_blocks, index, policy);
        self.find_trail(path, held_blocks);
        let resumed = self.deepest_state(request.usable_blocks(self.shape.block_tokens));
        let hit_blocks = resumed.map_or(0, |id| self.runs[id].end_blocks());
        let hit_tokens = self.tokens(hit_blocks);
        let prefill = self
            .cost
            .prefill(u64::from(request.prompt_tokens), hit_tokens);

        let held_and_hit = (held_blocks, hit_blocks);
        let view = view(index, request, path, held_and_hit, prefill, hints);
        self.observe(&view, policy);
        self.withdraw_trail(policy);
        let touch = first_touch(&view);
        if let Some(id) = resumed {
            self.use_state(id, touch);
        }
        let admitted = self.admit(&view, policy);
        let passage = Passage {
            resident_blocks: admitted,
            leaves_inside_run: cut_off.is_some(),
        };
        self.choose_positions(&view, passage, policy);
        let saved_states = self.pass(request.path_start, held_blocks, admitted, touch, policy);
        self.find_trail(path, admitted);
        self.settle_trail(policy);
        self.offer_anew(cut_off, policy);
        let gone = self.make_room_for_states(index, state, policy);
        self.audit_in_debug_builds(index);
        Outcome {
            held_blocks,
            hit_blocks,
            prefill,
            admitted_blocks: admitted - held_blocks,
            refused_blocks: request.path_blocks - admitted,
            evicted_blocks: gone.blocks,
            rewanted_blocks,
            saved_states,
            evicted_states: gone.states,
        }
    }

    /// The deepest run on the trail with a state that is at most so deep.
    fn deepest_state(&self, usable_blocks: u32) -> Option<RunId> {
        let usable = |id: &&RunId| {
            let run = &self.runs[**id];
            run.has_state && run.end_blocks() <= usable_blocks
        };
        self.trail.iter().rev().find(usable).copied()
    }

    /// What the path runs through is not on offer while the request is served.
    fn withdraw_trail(&mut self, policy: &mut dyn Policy) {
        for &id in &self.trail {
            if std::mem::take(&mut self.runs[id].on_offer) {
                policy.withdraw(id, Why::Used);
            }
        }
    }

    fn use_state(&mut self, id: RunId, fresh: Touch) {
        let touch = &mut self.runs[id].touch;
        *touch = Touch {
            created: touch.created,
            uses: touch.uses + 1,
            ..fresh
        };
    }

    /// Asks where to save, and keeps what can be: below the hit, down to what is resident.
    fn choose_positions(
        &mut self,
        view: &RequestView<'_>,
        passage: Passage,
        policy: &mut dyn Policy,
    ) {
        self.positions.clear();
        let mut positions = std::mem::take(&mut self.positions);
        policy.checkpoints(view, passage, &mut positions);
        let path = view.path.len() as u32;
        if let Some(&blocks) = positions.iter().find(|blocks| **blocks > path) {
            self.fault(
                view.index,
                PolicyFault::CheckpointOutOfRange { blocks, path },
            );
        }
        positions.retain(|blocks| (view.hit_blocks + 1..=passage.resident_blocks).contains(blocks));
        positions.sort_unstable();
        positions.dedup();
        self.positions = positions;
    }

    /// Saves the states, and makes what is fresh of the path resident in runs that end where one is saved.
    fn pass(
        &mut self,
        path_start: usize,
        held_blocks: u32,
        admitted: u32,
        touch: Touch,
        policy: &mut dyn Policy,
    ) -> u32 {
        let positions = std::mem::take(&mut self.positions);
        let mut saved = 0;
        let mut parent = self.trail.last().copied();
        let mut reached = held_blocks;
        for &position in &positions {
            let end = if position <= held_blocks {
                self.end_run_at(path_start, position, policy)
            } else {
                let id = self.append(parent, path_start, reached..position, touch);
                reached = position;
                parent = Some(id);
                id
            };
            saved += u32::from(self.save_state(end, touch));
        }
        if reached < admitted {
            self.append(parent, path_start, reached..admitted, touch);
        }
        self.positions = positions;
        saved
    }

    /// The run that ends so deep on the path, which is split if none does.
    fn end_run_at(&mut self, path_start: usize, position: u32, policy: &mut dyn Policy) -> RunId {
        let block = self.arena[path_start + position as usize - 1];
        let id = RunId(self.owner[block as usize]);
        let run = &self.runs[id];
        if run.end_blocks() == position {
            return id;
        }
        let head_blocks = position - run.depth_blocks;
        self.split(id, head_blocks, policy)
    }

    /// Saves a state at the end of a run, anew if there was one. A pinned run keeps what it has: its memory cannot be
    /// had back for a newcomer. Returns whether there is one more.
    fn save_state(&mut self, id: RunId, touch: Touch) -> bool {
        let run = &mut self.runs[id];
        if run.has_state {
            if run.touch.last_used != touch.last_used {
                self.use_state(id, touch);
            }
            return false;
        }
        if run.pins > 0 {
            return false;
        }
        run.has_state = true;
        run.touch = touch;
        self.state_bytes += self.bytes_of_state(id);
        true
    }

    fn bytes_of_state(&self, id: RunId) -> u64 {
        let tokens = self.tokens(self.runs[id].end_blocks());
        self.shape.state.map_or(0, |state| state.at(tokens))
    }

    /// What was cut off has a state nearer above it if one was saved where it was cut.
    fn offer_anew(&mut self, cut_off: Option<RunId>, policy: &mut dyn Policy) {
        if let Some(id) = cut_off
            && self.runs[id].on_offer
        {
            policy.offer(&self.candidate(id));
        }
    }

    fn settle_trail(&mut self, policy: &mut dyn Policy) {
        let trail = std::mem::take(&mut self.trail);
        for &id in &trail {
            self.settle(id, policy);
        }
        self.trail = trail;
    }

    /// Offers a run that may go, or merges it with its child where nothing ends there.
    pub(crate) fn settle(&mut self, id: RunId, policy: &mut dyn Policy) {
        if self.shape.state.is_none() || self.runs[id].children == 0 {
            return self.offer_if_leaf(id, policy);
        }
        let run = &self.runs[id];
        let Some(child) = run.only_child() else {
            return;
        };
        if run.has_state && run.pins == 0 {
            self.runs[id].on_offer = true;
            policy.offer(&self.candidate(id));
        } else if !run.has_state && run.pins == self.runs[child].pins {
            self.merge(id, child, policy);
        }
    }

    /// Makes one run of a run and its only child, whose id and history stay.
    fn merge(&mut self, head: RunId, tail: RunId, policy: &mut dyn Policy) {
        let above = self.runs[head];
        for &block in &self.arena[above.start..above.start + above.blocks as usize] {
            self.owner[block as usize] = tail.0;
        }
        let run = &mut self.runs[tail];
        // A path that holds the tail's blocks holds the head's right before them.
        run.start -= above.blocks as usize;
        run.depth_blocks = above.depth_blocks;
        run.blocks += above.blocks;
        run.parent = above.parent;
        if let Some(parent) = above.parent {
            self.runs[parent].children_xor ^= head.0 ^ tail.0;
        }
        self.runs.remove(head);
        policy.merge(head, tail, above.blocks);
        if self.runs[tail].on_offer {
            policy.offer(&self.candidate(tail));
        }
    }

    /// Evicts whole candidates until the cache fits.
    fn make_room_for_states(
        &mut self,
        index: u32,
        state: StateBytes,
        policy: &mut dyn Policy,
    ) -> Gone {
        let mut gone = Gone::default();
        while self.used_bytes() > self.shape.capacity_bytes {
            let id = match self.ask_victim(policy) {
                Ok((id, _)) => id,
                Err(fault) => {
                    self.fault(index, fault);
                    self.own_candidate()
                }
            };
            self.evict_whole(id, state, &mut gone, policy);
        }
        gone
    }

    /// What goes when a policy answers wrongly: the deepest of the request's own that may, else the first of all.
    fn own_candidate(&self) -> RunId {
        let on_offer = |id: &&RunId| self.runs.get(**id).is_some_and(|run| run.on_offer);
        let own = self.trail.iter().rev().find(on_offer).copied();
        let first = || self.runs.live().find(|(_, run)| run.on_offer);
        own.or_else(|| first().map(|(id, _)| id))
            .expect("what overflows is not pinned, and below it is a leaf that is not")
    }

    fn evict_whole(
        &mut self,
        id: RunId,
        state: StateBytes,
        gone: &mut Gone,
        policy: &mut dyn Policy,
    ) {
        let mut part = self.checkpoint_candidate(id, state);
        let run = self.runs[id];
        let is_leaf = run.children == 0;
        if !is_leaf {
            part.blocks = 0;
        }
        if run.has_state {
            self.state_bytes -= self.bytes_of_state(id);
            self.runs[id].has_state = false;
            gone.states += 1;
        }
        self.runs[id].on_offer = false;
        policy.evicted(&part, is_leaf);
        if let Some(child) = run.only_child() {
            return self.merge(id, child, policy);
        }
        for &block in &self.arena[run.start..run.start + run.blocks as usize] {
            self.owner[block as usize] = EVICTED;
        }
        self.used_blocks -= u64::from(run.blocks);
        gone.blocks += run.blocks;
        self.runs.remove(id);
        if let Some(parent) = run.parent {
            self.runs.remove_child(parent, id);
            self.settle(parent, policy);
        }
    }

    /// The facts of a run, or of the state at its end.
    pub(crate) fn checkpoint_candidate(&self, id: RunId, state: StateBytes) -> Candidate {
        let run = &self.runs[id];
        let of_state = match run.has_state {
            true => state.at(self.tokens(run.end_blocks())),
            false => 0,
        };
        let base_blocks = self.state_above(id);
        let whole = self.unpriced_part(id, run, 0);
        let (frees, of_blocks) = match run.children {
            0 => (Frees::Run, whole.bytes),
            _ => (Frees::State, 0),
        };
        Candidate {
            base_blocks,
            frees,
            bytes: of_blocks + of_state,
            recompute: match run.has_state {
                true => self.prefill_blocks(run.end_blocks(), base_blocks),
                false => Work::default(),
            },
            ..whole
        }
    }

    /// Depth of the nearest state above a run.
    fn state_above(&self, id: RunId) -> u32 {
        let mut next = self.runs[id].parent;
        while let Some(above) = next {
            let run = &self.runs[above];
            if run.has_state {
                return run.end_blocks();
            }
            next = run.parent;
        }
        0
    }
}

/// What evictions took.
#[derive(Clone, Copy, Debug, Default)]
struct Gone {
    blocks: u32,
    states: u32,
}
