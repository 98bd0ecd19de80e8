//! Room: who is evicted, and who hears of it.

use policy_api::{BlockId, Candidate, CandidateKind, NodeId, Policy, PolicyFault, StateBytes};

use crate::{ABSENT, Cache, Counters, EVICTED, EvictUnit};

/// Why something left the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionReason {
    /// The policy chose it when room was needed.
    Room,
    /// The request that brought it in was abandoned, and nobody else used it.
    Abandoned,
}

/// What left the cache, as a tier below hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Evicted<'a> {
    /// The blocks of the path from the root to the end of what left. The last `part.blocks` of them left; in checkpoint models none
    /// did where only the state at their end was evicted.
    pub path: &'a [BlockId],
    /// Its facts and bytes.
    pub part: &'a Candidate,
    /// Why it left.
    pub reason: EvictionReason,
}

/// Who hears of evictions.
pub(crate) type Sink<'t> = Box<dyn FnMut(&Evicted<'_>) + 't>;

/// What is to fit beside what is there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    pub(crate) blocks: u64,
    pub(crate) state_bytes: u64,
}

/// What evictions freed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freed {
    pub(crate) blocks: u64,
    pub(crate) states: u64,
}

impl Freed {
    pub(crate) fn count(self, counters: &mut Counters) {
        counters.evicted_blocks += self.blocks;
        if let Some(states) = &mut counters.evicted_states {
            *states += self.states;
        }
    }
}

impl<'t> Cache<'t> {
    /// From now on `sink` hears of everything that leaves the cache, right after the policy: a tier below can take it over.
    pub fn on_eviction(&mut self, sink: impl FnMut(&Evicted<'_>) + 't) {
        self.sink = Some(Box::new(sink));
    }

    /// Evicts until what is needed fits too, or nothing is evictable any more.
    pub(crate) fn make_room(&mut self, need: Need, policy: &mut dyn Policy) -> Freed {
        let mut freed = Freed::default();
        loop {
            let overflow = self.overflow(need);
            if overflow == 0 {
                return freed;
            }
            let Some((id, at_most)) = self.choose_victim(policy) else {
                return freed;
            };
            match self.config.state {
                None => {
                    let blocks = self.evict_tail(id, at_most, overflow, policy);
                    freed.blocks += u64::from(blocks);
                }
                Some(state) => self.evict_whole(id, state, &mut freed, policy),
            }
        }
    }

    /// How much too full the cache is: in blocks where KV is per token, which spares a division per eviction, else in bytes.
    fn overflow(&self, need: Need) -> u64 {
        if self.config.state.is_none() {
            let wanted_blocks = self.used_blocks + need.blocks;
            wanted_blocks.saturating_sub(self.capacity_blocks)
        } else {
            let wanted_bytes = self.used_bytes() + self.bytes_of(need);
            wanted_bytes.saturating_sub(self.config.capacity_bytes)
        }
    }

    pub(crate) fn bytes_of(&self, need: Need) -> u64 {
        need.blocks * self.config.block_bytes + need.state_bytes
    }

    /// The victim and at most how many blocks of it: the policy's answer or, where that is wrong, the cache's own choice. None
    /// where nothing is evictable.
    fn choose_victim(&mut self, policy: &mut dyn Policy) -> Option<(NodeId, u32)> {
        match self.ask_victim(policy) {
            Ok(victim) => Some(victim),
            Err(fault) => {
                let own = self.own_candidate()?;
                self.fault(fault);
                Some((own, u32::MAX))
            }
        }
    }

    fn ask_victim(&mut self, policy: &mut dyn Policy) -> Result<(NodeId, u32), PolicyFault> {
        let victim = policy.victim().ok_or(PolicyFault::NoVictim)?;
        if !self.is_evictable(victim.id) {
            return Err(PolicyFault::NotEvictable(victim.id));
        }
        if victim.blocks == 0 {
            return Err(PolicyFault::NoBlocks(victim.id));
        }
        Ok((victim.id, victim.blocks))
    }

    /// What is evicted when a policy answers wrongly: the deepest candidate of the request's own path, so that nobody else pays
    /// for the fault, or else the first of all.
    fn own_candidate(&self) -> Option<NodeId> {
        let own = self.path_nodes.iter().rev().copied();
        let all = self.nodes.live().map(|(id, _)| id);
        own.chain(all).find(|id| self.is_evictable(*id))
    }

    pub(crate) fn is_evictable(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| node.evictable)
    }

    /// Where KV is per token: evicts blocks from the tail of a leaf, or the whole leaf where that is the unit.
    fn evict_tail(
        &mut self,
        id: NodeId,
        at_most: u32,
        overflow_blocks: u64,
        policy: &mut dyn Policy,
    ) -> u32 {
        let node = self.nodes[id];
        let blocks = match self.config.evict_unit {
            EvictUnit::Block => {
                let overflow_blocks = u32::try_from(overflow_blocks).unwrap_or(u32::MAX);
                at_most.min(overflow_blocks).min(node.blocks)
            }
            EvictUnit::Leaf | EvictUnit::LeafSglang => node.blocks,
        };
        let kept = node.blocks - blocks;
        let evicted = self.candidate_part(id, &node, kept);
        self.disown(id, kept, EVICTED);
        policy.evicted(&evicted, kept == 0);
        self.tell(&evicted, EvictionReason::Room);
        if kept > 0 {
            self.nodes[id].blocks = kept;
            self.used_blocks -= u64::from(blocks);
            policy.offer(&self.candidate(id));
        } else if let Some(parent) = self.remove_leaf(id) {
            self.offer_if_leaf(parent, policy);
        }
        blocks
    }

    /// In checkpoint models: evicts a leaf with its state, or the state of a node with one child.
    fn evict_whole(
        &mut self,
        id: NodeId,
        state: StateBytes,
        freed: &mut Freed,
        policy: &mut dyn Policy,
    ) {
        let mut evicted = self.checkpoint_candidate(id, state);
        let node = self.nodes[id];
        let is_leaf = evicted.kind == CandidateKind::Leaf;
        if node.has_state {
            self.state_bytes -= self.bytes_of_state(id);
            self.nodes[id].has_state = false;
            freed.states += 1;
        }
        self.nodes[id].evictable = false;
        if is_leaf {
            self.disown(id, 0, EVICTED);
            freed.blocks += u64::from(node.blocks);
        } else {
            evicted.blocks = 0;
        }
        policy.evicted(&evicted, is_leaf);
        self.tell(&evicted, EvictionReason::Room);
        if let Some(child) = node.only_child() {
            self.merge(id, child, policy);
        } else if let Some(parent) = self.remove_leaf(id) {
            self.merge_or_offer(parent, policy);
        }
    }

    /// Drops a leaf that only abandoned requests used: as if it had never been resident.
    pub(crate) fn drop_provisional(&mut self, id: NodeId, policy: &mut dyn Policy) {
        let dropped = self.candidate(id);
        self.disown(id, 0, ABSENT);
        policy.evicted(&dropped, true);
        self.tell(&dropped, EvictionReason::Abandoned);
        self.remove_leaf(id);
    }

    /// The blocks of a node from block `kept` on are nobody's.
    fn disown(&mut self, id: NodeId, kept: u32, why: u32) {
        let node = &self.nodes[id];
        for &block in &self.arena[node.start + kept as usize..node.start + node.blocks as usize] {
            self.owner[block.index()] = why;
        }
    }

    fn tell(&mut self, part: &Candidate, reason: EvictionReason) {
        let Some(sink) = &mut self.sink else { return };
        let node = &self.nodes[part.id];
        // A path that holds the node's blocks holds all above them right before.
        let root = node.start - node.depth_blocks as usize;
        let path = &self.arena[root..node.start + node.blocks as usize];
        sink(&Evicted { path, part, reason });
    }

    pub(crate) fn bytes_of_state(&self, id: NodeId) -> u64 {
        let tokens = self.tokens(self.nodes[id].end_blocks());
        self.config.state.map_or(0, |state| state.at(tokens))
    }
}
