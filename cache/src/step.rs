//! The step of one request: match, charge, observe, touch, admit, evict.

use std::ops::Range;

use policy_api::{
    BlockId, Candidate, Hints, Policy, PolicyFault, Request, RequestView, RunId, Why, Work,
};

use crate::runs::{Run, Touch};
use crate::{ABSENT, Cache, EVICTED, EvictUnit};

/// What happened to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Leading resident blocks of the whole path when the request came.
    pub held_blocks: u32,
    /// Blocks that count as a prefix hit.
    pub hit_blocks: u32,
    /// The prefill that the request cost.
    pub prefill: Work,
    /// Blocks that came in.
    pub admitted_blocks: u32,
    /// Blocks of the path that did not come in.
    pub refused_blocks: u32,
    /// Blocks that went, of this request or any other.
    pub evicted_blocks: u32,
    /// Blocks of the path that had been evicted and not asked for since.
    pub rewanted_blocks: u32,
    /// States that were saved; checkpoint models only.
    pub saved_states: u32,
    /// States that went.
    pub evicted_states: u32,
}

impl Cache<'_> {
    /// Serves one request under `policy`.
    ///
    /// `index` is its position in the trace, the clock of all facts, larger than that of any request served before.
    /// `hints` are those that the policy may read.
    ///
    /// # Panics
    /// If the path is not within the arena, or holds a block id that the cache was not made for.
    pub fn serve(
        &mut self,
        index: u32,
        request: &Request,
        hints: Option<&Hints>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        if let Some(state) = self.shape.state {
            return self.serve_at_checkpoints(index, request, hints, state, policy);
        }
        let arena = self.arena;
        let path = &arena[request.path_range()];
        let block_tokens = self.shape.block_tokens;

        let seen = &path[..request.seen_blocks.min(request.path_blocks) as usize];
        let held_blocks = self.held_blocks(seen);
        let hit_blocks = held_blocks.min(request.usable_blocks(block_tokens));
        let hit_tokens = u64::from(hit_blocks) * u64::from(block_tokens);
        let prefill = self
            .cost
            .prefill(u64::from(request.prompt_tokens), hit_tokens);
        let rewanted_blocks = self.note_rewanted(&seen[held_blocks as usize..]);
        if self.shape.evict_unit != EvictUnit::Block {
            self.cut(path, hit_blocks, index, policy);
        }
        self.cut(path, held_blocks, index, policy);
        self.find_trail(path, held_blocks);

        let view = view(
            index,
            request,
            path,
            (held_blocks, hit_blocks),
            prefill,
            hints,
        );
        self.observe(&view, policy);
        let touch = first_touch(&view);
        self.touch(touch, policy);
        let admitted = self.admit(&view, policy);
        let fresh = self.insert(request.path_start, held_blocks..admitted, touch, policy);
        let evicted_blocks = self.make_room(index, fresh, policy);
        self.audit_in_debug_builds(index);
        Outcome {
            held_blocks,
            hit_blocks,
            prefill,
            admitted_blocks: admitted - held_blocks,
            refused_blocks: request.path_blocks - admitted,
            evicted_blocks,
            rewanted_blocks,
            ..Outcome::default()
        }
    }

    /// Counts the blocks that were evicted and are asked for now for the first time since.
    pub(crate) fn note_rewanted(&mut self, missing: &[BlockId]) -> u32 {
        let mut rewanted = 0;
        for &block in missing {
            let owner = &mut self.owner[block as usize];
            if *owner == EVICTED {
                *owner = ABSENT;
                rewanted += 1;
            }
        }
        rewanted
    }

    /// Splits the run that holds the first `depth` blocks of the path, if it goes on below them. Returns what was cut off.
    pub(crate) fn cut(
        &mut self,
        path: &[BlockId],
        depth: u32,
        index: u32,
        policy: &mut dyn Policy,
    ) -> Option<RunId> {
        let last = path.get(depth.checked_sub(1)? as usize)?;
        let id = RunId(self.owner[*last as usize]);
        let run = self.runs[id];
        let head_blocks = depth - run.depth_blocks;
        if head_blocks == run.blocks {
            return None;
        }
        self.split(id, head_blocks, policy);
        if self.shape.evict_unit == EvictUnit::LeafSglang {
            self.runs[id].touch.last_used = index;
        }
        if self.runs[id].on_offer {
            policy.offer(&self.candidate(id));
        }
        Some(id)
    }

    /// Cuts a run in two. The tail keeps the id, the head gets a new one.
    pub(crate) fn split(
        &mut self,
        tail: RunId,
        head_blocks: u32,
        policy: &mut dyn Policy,
    ) -> RunId {
        let run = self.runs[tail];
        let head = self.runs.insert(Run {
            blocks: head_blocks,
            children: 1,
            children_xor: tail.0,
            children_seen: 1,
            on_offer: false,
            ends_pin: false,
            has_state: false,
            ..run
        });
        if let Some(parent) = run.parent {
            self.runs[parent].children_xor ^= tail.0 ^ head.0;
        }
        let rest = &mut self.runs[tail];
        rest.start += head_blocks as usize;
        rest.depth_blocks += head_blocks;
        rest.blocks -= head_blocks;
        rest.parent = Some(head);
        for &block in &self.arena[run.start..run.start + head_blocks as usize] {
            self.owner[block as usize] = head.0;
        }
        policy.split(head, tail);
        head
    }

    /// Collects the runs that hold the first `held_blocks` of the path, from the root.
    pub(crate) fn find_trail(&mut self, path: &[BlockId], held_blocks: u32) {
        self.trail.clear();
        let last = held_blocks.checked_sub(1).map(|last| path[last as usize]);
        let mut next = last.map(|block| RunId(self.owner[block as usize]));
        while let Some(id) = next {
            self.trail.push(id);
            next = self.runs[id].parent;
        }
        self.trail.reverse();
    }

    pub(crate) fn observe(&mut self, view: &RequestView<'_>, policy: &mut dyn Policy) {
        self.trail_facts.clear();
        if policy.wants_runs() {
            let mut facts = std::mem::take(&mut self.trail_facts);
            facts.extend(self.trail.iter().map(|id| self.candidate(*id)));
            self.trail_facts = facts;
        }
        policy.observe(view, &self.trail_facts);
    }

    /// One touch for every run on the trail. Its last run, if it was on offer, no longer is.
    fn touch(&mut self, fresh: Touch, policy: &mut dyn Policy) {
        for &id in &self.trail {
            let touch = &mut self.runs[id].touch;
            *touch = Touch {
                created: touch.created,
                uses: touch.uses + 1,
                ..fresh
            };
        }
        if let Some(&last) = self.trail.last()
            && std::mem::take(&mut self.runs[last].on_offer)
        {
            policy.withdraw(last, Why::Used);
        }
    }

    /// Asks how much may be resident; a wrong answer counts as the nearest right one.
    pub(crate) fn admit(&mut self, view: &RequestView<'_>, policy: &mut dyn Policy) -> u32 {
        let path = view.path.len() as u32;
        let rival = if policy.needs_rival() {
            self.rival(view.index, policy)
        } else {
            None
        };
        let blocks = policy.admit(view, rival.as_ref());
        let held = view.held_blocks;
        if blocks < held || blocks > path {
            self.fault(
                view.index,
                PolicyFault::AdmissionOutOfRange { blocks, held, path },
            );
        }
        let offered = match self.shape.evict_unit {
            EvictUnit::Block => path,
            EvictUnit::Leaf | EvictUnit::LeafSglang => path
                .min(u32::try_from(self.capacity_blocks).unwrap_or(u32::MAX))
                .max(held),
        };
        blocks.clamp(held, offered)
    }

    /// The run that would go first.
    fn rival(&mut self, index: u32, policy: &mut dyn Policy) -> Option<Candidate> {
        let id = policy.victim()?.id;
        if self.on_offer(id) {
            return Some(self.candidate(id));
        }
        self.fault(index, PolicyFault::NotOnOffer(id));
        None
    }

    /// Makes the `fresh` blocks of a path resident and offers its last run. Returns the run of fresh blocks.
    fn insert(
        &mut self,
        path_start: usize,
        fresh: Range<u32>,
        touch: Touch,
        policy: &mut dyn Policy,
    ) -> Option<RunId> {
        let parent = self.trail.last().copied();
        if fresh.is_empty() {
            if let Some(last) = parent {
                self.offer_if_leaf(last, policy);
            }
            return None;
        }
        let id = self.append(parent, path_start, fresh, touch);
        self.offer_if_leaf(id, policy);
        Some(id)
    }

    /// A new run of blocks of a path, below `parent`.
    pub(crate) fn append(
        &mut self,
        parent: Option<RunId>,
        path_start: usize,
        fresh: Range<u32>,
        touch: Touch,
    ) -> RunId {
        let start = path_start + fresh.start as usize;
        let blocks = fresh.end - fresh.start;
        let id = self.runs.insert(Run {
            start,
            blocks,
            depth_blocks: fresh.start,
            parent,
            children: 0,
            children_xor: 0,
            children_seen: 0,
            pins: 0,
            touch,
            on_offer: false,
            ends_pin: false,
            has_state: false,
        });
        if let Some(parent) = parent {
            self.runs.add_child(parent, id);
            self.runs[parent].children_seen += 1;
        }
        for &block in &self.arena[start..start + blocks as usize] {
            self.owner[block as usize] = id.0;
        }
        self.used_blocks += u64::from(blocks);
        id
    }

    /// Evicts until the cache fits. Returns the number of blocks that went.
    fn make_room(&mut self, index: u32, fresh: Option<RunId>, policy: &mut dyn Policy) -> u32 {
        let mut gone = 0;
        while self.used_blocks > self.capacity_blocks {
            let overflow =
                u32::try_from(self.used_blocks - self.capacity_blocks).unwrap_or(u32::MAX);
            let (id, at_most) = match self.ask_victim(policy) {
                Ok(victim) => victim,
                Err(fault) => {
                    self.fault(index, fault);
                    // Only the present request can have made the cache too full, so its fresh run still has blocks.
                    (
                        fresh.expect("a cache overflows only by fresh blocks"),
                        u32::MAX,
                    )
                }
            };
            let blocks = match self.shape.evict_unit {
                EvictUnit::Block => at_most.min(overflow).min(self.runs[id].blocks),
                EvictUnit::Leaf | EvictUnit::LeafSglang => self.runs[id].blocks,
            };
            self.evict(id, blocks, policy);
            gone += blocks;
        }
        gone
    }

    pub(crate) fn ask_victim(
        &mut self,
        policy: &mut dyn Policy,
    ) -> Result<(RunId, u32), PolicyFault> {
        let victim = policy.victim().ok_or(PolicyFault::NoVictim)?;
        if !self.on_offer(victim.id) {
            return Err(PolicyFault::NotOnOffer(victim.id));
        }
        if victim.blocks == 0 {
            return Err(PolicyFault::NoBlocks(victim.id));
        }
        Ok((victim.id, victim.blocks))
    }

    /// Takes `blocks` from the tail of a leaf run.
    fn evict(&mut self, id: RunId, blocks: u32, policy: &mut dyn Policy) {
        let run = self.runs[id];
        let kept = run.blocks - blocks;
        let gone = self.candidate_part(id, &run, kept);
        for &block in &self.arena[run.start + kept as usize..run.start + run.blocks as usize] {
            self.owner[block as usize] = EVICTED;
        }
        self.used_blocks -= u64::from(blocks);
        policy.evicted(&gone, kept == 0);
        if kept > 0 {
            self.runs[id].blocks = kept;
            policy.offer(&self.candidate(id));
            return;
        }
        self.runs.remove(id);
        if let Some(parent) = run.parent {
            self.runs.remove_child(parent, id);
            self.offer_if_leaf(parent, policy);
        }
    }

    /// Offers a run that may go.
    pub(crate) fn offer_if_leaf(&mut self, id: RunId, policy: &mut dyn Policy) {
        let run = &mut self.runs[id];
        if run.children == 0 && run.pins == 0 {
            run.on_offer = true;
            policy.offer(&self.candidate(id));
        }
    }

    fn on_offer(&self, id: RunId) -> bool {
        self.runs.get(id).is_some_and(|run| run.on_offer)
    }

    pub(crate) fn fault(&mut self, index: u32, fault: PolicyFault) {
        self.fault_count += 1;
        self.first_fault.get_or_insert((index, fault));
    }
}

/// The request as a policy may see it. `held_and_hit` are the counts of blocks.
pub(crate) fn view<'a>(
    index: u32,
    request: &Request,
    path: &'a [BlockId],
    held_and_hit: (u32, u32),
    prefill: Work,
    hints: Option<&'a Hints>,
) -> RequestView<'a> {
    RequestView {
        index,
        arrival_us: request.arrival_us,
        session: request.session_id,
        step: request.step,
        kind: request.kind,
        tool: request.tool,
        tenant: request.tenant,
        prompt_tokens: request.prompt_tokens,
        output_tokens: request.output_tokens,
        path,
        prompt_blocks: request.prompt_blocks,
        held_blocks: held_and_hit.0,
        hit_blocks: held_and_hit.1,
        prefill,
        hints,
    }
}

/// What a request leaves behind on blocks that become resident with it.
pub(crate) fn first_touch(view: &RequestView<'_>) -> Touch {
    Touch {
        created: view.index,
        last_used: view.index,
        uses: 1,
        session: view.session,
        step: view.step,
        kind: view.kind,
    }
}
