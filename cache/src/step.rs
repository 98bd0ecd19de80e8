//! The step of one request: match, charge, observe, touch, admit, evict.

use std::ops::Range;

use policy_api::{
    BlockId, Candidate, Hints, NodeId, Policy, PolicyFault, Request, RequestView, WithdrawReason,
    Work,
};

use crate::nodes::{Node, Touch};
use crate::{ABSENT, Cache, Counters, EVICTED, EvictUnit};

/// What happened to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Leading resident blocks of the whole path when the request came.
    pub held_blocks: u32,
    /// The prefill that the request cost.
    pub prefill: Work,
    /// What the request hit and changed.
    pub counters: Counters,
}

impl Cache<'_> {
    /// Serves one request under `policy`.
    ///
    /// `index` is its depth in the trace, the clock of all facts, larger than that of any request served before.
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
        if let Some(state) = self.config.state {
            return self.serve_at_checkpoints(index, request, hints, state, policy);
        }
        let arena = self.arena;
        let path = &arena[request.path_range()];
        let block_tokens = self.config.block_tokens;

        let seen = &path[..request.seen_blocks.min(request.path_blocks) as usize];
        let held_blocks = self.held_blocks(seen);
        let hit_blocks = held_blocks.min(request.usable_blocks(block_tokens));
        let hit_tokens = u64::from(hit_blocks) * u64::from(block_tokens);
        let prefill = self
            .cost
            .prefill(u64::from(request.prompt_tokens), hit_tokens);
        let reaccessed_blocks = self.note_reaccessed(&seen[held_blocks as usize..]);
        if self.config.evict_unit != EvictUnit::Block {
            self.split_at(path, hit_blocks, index, policy);
        }
        self.split_at(path, held_blocks, index, policy);
        self.find_path_nodes(path, held_blocks);

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
            prefill,
            counters: Counters {
                hit_blocks: u64::from(hit_blocks),
                admitted_blocks: u64::from(admitted - held_blocks),
                rejected_blocks: u64::from(request.path_blocks - admitted),
                evicted_blocks: u64::from(evicted_blocks),
                reaccessed_blocks: u64::from(reaccessed_blocks),
                saved_states: None,
                evicted_states: None,
            },
        }
    }

    /// Counts the blocks that were evicted and are asked for now for the first time since.
    pub(crate) fn note_reaccessed(&mut self, missing: &[BlockId]) -> u32 {
        let mut reaccessed = 0;
        for &block in missing {
            let owner = &mut self.owner[block as usize];
            if *owner == EVICTED {
                *owner = ABSENT;
                reaccessed += 1;
            }
        }
        reaccessed
    }

    /// Splits the node that holds the first `depth` blocks of the path, if it goes on below them. Returns what was split_at off.
    pub(crate) fn split_at(
        &mut self,
        path: &[BlockId],
        depth: u32,
        index: u32,
        policy: &mut dyn Policy,
    ) -> Option<NodeId> {
        let last = path.get(depth.checked_sub(1)? as usize)?;
        let id = NodeId(self.owner[*last as usize]);
        let node = self.nodes[id];
        let head_blocks = depth - node.depth_blocks;
        if head_blocks == node.blocks {
            return None;
        }
        self.split(id, head_blocks, policy);
        if self.config.evict_unit == EvictUnit::LeafSglang {
            self.nodes[id].touch.last_used = index;
        }
        if self.nodes[id].evictable {
            policy.offer(&self.candidate(id));
        }
        Some(id)
    }

    /// Cuts a node in two. The tail keeps the id, the head gets a new one.
    pub(crate) fn split(
        &mut self,
        tail: NodeId,
        head_blocks: u32,
        policy: &mut dyn Policy,
    ) -> NodeId {
        let node = self.nodes[tail];
        let head = self.nodes.insert(Node {
            blocks: head_blocks,
            children: 1,
            children_xor: tail.0,
            children_seen: 1,
            evictable: false,
            ends_pin: false,
            has_state: false,
            ..node
        });
        if let Some(parent) = node.parent {
            self.nodes[parent].children_xor ^= tail.0 ^ head.0;
        }
        let rest = &mut self.nodes[tail];
        rest.start += head_blocks as usize;
        rest.depth_blocks += head_blocks;
        rest.blocks -= head_blocks;
        rest.parent = Some(head);
        for &block in &self.arena[node.start..node.start + head_blocks as usize] {
            self.owner[block as usize] = head.0;
        }
        policy.split(head, tail);
        head
    }

    /// Collects the nodes that hold the first `held_blocks` of the path, from the root.
    pub(crate) fn find_path_nodes(&mut self, path: &[BlockId], held_blocks: u32) {
        self.path_nodes.clear();
        let last = held_blocks.checked_sub(1).map(|last| path[last as usize]);
        let mut next = last.map(|block| NodeId(self.owner[block as usize]));
        while let Some(id) = next {
            self.path_nodes.push(id);
            next = self.nodes[id].parent;
        }
        self.path_nodes.reverse();
    }

    pub(crate) fn observe(&mut self, view: &RequestView<'_>, policy: &mut dyn Policy) {
        self.path_facts.clear();
        if policy.wants_path_nodes() {
            let mut facts = std::mem::take(&mut self.path_facts);
            facts.extend(self.path_nodes.iter().map(|id| self.candidate(*id)));
            self.path_facts = facts;
        }
        policy.observe(view, &self.path_facts);
    }

    /// One touch for every node on the path_nodes. Its last node, if it was evictable, no longer is.
    fn touch(&mut self, fresh: Touch, policy: &mut dyn Policy) {
        for &id in &self.path_nodes {
            let touch = &mut self.nodes[id].touch;
            *touch = Touch {
                created: touch.created,
                uses: touch.uses + 1,
                ..fresh
            };
        }
        if let Some(&last) = self.path_nodes.last()
            && std::mem::take(&mut self.nodes[last].evictable)
        {
            policy.withdraw(last, WithdrawReason::Used);
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
        let offered = match self.config.evict_unit {
            EvictUnit::Block => path,
            EvictUnit::Leaf | EvictUnit::LeafSglang => path
                .min(u32::try_from(self.capacity_blocks).unwrap_or(u32::MAX))
                .max(held),
        };
        blocks.clamp(held, offered)
    }

    /// The node that would go first.
    fn rival(&mut self, index: u32, policy: &mut dyn Policy) -> Option<Candidate> {
        let id = policy.victim()?.id;
        if self.evictable(id) {
            return Some(self.candidate(id));
        }
        self.fault(index, PolicyFault::NotEvictable(id));
        None
    }

    /// Makes the `fresh` blocks of a path resident and offers its last node. Returns the node of fresh blocks.
    fn insert(
        &mut self,
        path_start: usize,
        fresh: Range<u32>,
        touch: Touch,
        policy: &mut dyn Policy,
    ) -> Option<NodeId> {
        let parent = self.path_nodes.last().copied();
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

    /// A new node of blocks of a path, below `parent`.
    pub(crate) fn append(
        &mut self,
        parent: Option<NodeId>,
        path_start: usize,
        fresh: Range<u32>,
        touch: Touch,
    ) -> NodeId {
        let start = path_start + fresh.start as usize;
        let blocks = fresh.end - fresh.start;
        let id = self.nodes.insert(Node {
            start,
            blocks,
            depth_blocks: fresh.start,
            parent,
            children: 0,
            children_xor: 0,
            children_seen: 0,
            pins: 0,
            touch,
            evictable: false,
            ends_pin: false,
            has_state: false,
        });
        if let Some(parent) = parent {
            self.nodes.add_child(parent, id);
            self.nodes[parent].children_seen += 1;
        }
        for &block in &self.arena[start..start + blocks as usize] {
            self.owner[block as usize] = id.0;
        }
        self.used_blocks += u64::from(blocks);
        id
    }

    /// Evicts until the cache fits. Returns the number of blocks that went.
    fn make_room(&mut self, index: u32, fresh: Option<NodeId>, policy: &mut dyn Policy) -> u32 {
        let mut evicted = 0;
        while self.used_blocks > self.capacity_blocks {
            let overflow =
                u32::try_from(self.used_blocks - self.capacity_blocks).unwrap_or(u32::MAX);
            let (id, at_most) = match self.ask_victim(policy) {
                Ok(victim) => victim,
                Err(fault) => {
                    self.fault(index, fault);
                    // Only the present request can have made the cache too full, so its fresh node still has blocks.
                    (
                        fresh.expect("a cache overflows only by fresh blocks"),
                        u32::MAX,
                    )
                }
            };
            let blocks = match self.config.evict_unit {
                EvictUnit::Block => at_most.min(overflow).min(self.nodes[id].blocks),
                EvictUnit::Leaf | EvictUnit::LeafSglang => self.nodes[id].blocks,
            };
            self.evict(id, blocks, policy);
            evicted += blocks;
        }
        evicted
    }

    pub(crate) fn ask_victim(
        &mut self,
        policy: &mut dyn Policy,
    ) -> Result<(NodeId, u32), PolicyFault> {
        let victim = policy.victim().ok_or(PolicyFault::NoVictim)?;
        if !self.evictable(victim.id) {
            return Err(PolicyFault::NotEvictable(victim.id));
        }
        if victim.blocks == 0 {
            return Err(PolicyFault::NoBlocks(victim.id));
        }
        Ok((victim.id, victim.blocks))
    }

    /// Takes `blocks` from the tail of a leaf node.
    fn evict(&mut self, id: NodeId, blocks: u32, policy: &mut dyn Policy) {
        let node = self.nodes[id];
        let kept = node.blocks - blocks;
        let evicted = self.candidate_part(id, &node, kept);
        for &block in &self.arena[node.start + kept as usize..node.start + node.blocks as usize] {
            self.owner[block as usize] = EVICTED;
        }
        self.used_blocks -= u64::from(blocks);
        policy.evicted(&evicted, kept == 0);
        if kept > 0 {
            self.nodes[id].blocks = kept;
            policy.offer(&self.candidate(id));
            return;
        }
        self.nodes.remove(id);
        if let Some(parent) = node.parent {
            self.nodes.remove_child(parent, id);
            self.offer_if_leaf(parent, policy);
        }
    }

    /// Offers a node that may go.
    pub(crate) fn offer_if_leaf(&mut self, id: NodeId, policy: &mut dyn Policy) {
        let node = &mut self.nodes[id];
        if node.children == 0 && node.pins == 0 {
            node.evictable = true;
            policy.offer(&self.candidate(id));
        }
    }

    fn evictable(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| node.evictable)
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
