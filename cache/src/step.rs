//! The step of one request: match, charge, observe, touch, admit, evict.
//!
//! A trace of two requests, each letter a block, through a cache of four blocks under LRU. The first request asks for `abcd` and
//! makes one node of it. The second asks for `abxy`:
//!
//! ```text
//!     before          match, split     touch            admit, insert      evict
//!
//!     abcd            ab               ab  used by 2    ab   used by 2     ab   used by 2
//!     used by 1       |                |               /  \                |
//!                     cd               cd  used by 1  cd    xy             xy
//! ```
//!
//! - **Match**: `ab` is held. The path leaves the node between its ends, so it splits: only `ab` is about to be touched.
//! - **Charge**: the prefill of the prompt, two blocks of which hit.
//! - **Observe**: the policy hears of the request, and of `ab` as request 1 left it.
//! - **Touch**: every node of the path has one use more. Its last node is withdrawn if it was evictable.
//! - **Admit**: the admission policy lets in how much it likes of `xy`, here all of it.
//! - **Evict**: six blocks are two too many. The candidates are the leaves: `cd`, then `xy`, which is as evictable as any other.

use std::ops::Range;

use policy_api::{
    BlockId, Candidate, Hints, Policy, PolicyFault, Request, RequestIndex, RequestView,
    WithdrawReason, Work,
};

use crate::nodes::Touch;
use crate::room::Need;
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
    /// Serves one request from its arrival to its end, as if no other were under way.
    ///
    /// `hints` are those that the policy may read. Blocks of the path from `request.seen_blocks` on must never have been resident.
    ///
    /// # Panics
    /// If the path is not within the arena, or holds a block id that the cache was not made for.
    pub fn serve(
        &mut self,
        index: RequestIndex,
        request: &Request,
        hints: Option<&Hints>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        self.present = index;
        let outcome = if self.config.state.is_none() {
            self.serve_per_token(request, hints, policy)
        } else {
            self.serve_at_checkpoints(request, hints, policy)
        };
        self.end_event();
        outcome
    }

    fn serve_per_token(
        &mut self,
        request: &Request,
        hints: Option<&Hints>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        let path = self.path(request);
        let seen = &path[..request.seen_blocks.min(request.path_blocks) as usize];
        let held_blocks = self.held_blocks(seen);
        let hit_blocks = held_blocks.min(request.usable_blocks(self.config.block_tokens));
        let reaccessed_blocks = self.note_reaccessed(&seen[held_blocks as usize..]);
        let mut outcome = self.found(request, held_blocks, hit_blocks, reaccessed_blocks);
        if self.config.evict_unit != EvictUnit::Block {
            // Engines that evict whole leaves split where the look-up ends, which is before the last token.
            self.split_at(path, hit_blocks, policy);
        }
        self.split_at(path, held_blocks, policy);
        self.find_path_nodes(path, held_blocks);

        let view = self.view(request, hints, &outcome);
        self.observe(&view, policy);
        let touch = self.first_touch(request);
        self.touch_path(touch);
        self.withdraw_last(policy);
        let admitted = self.admit(&view, policy);
        self.insert(request.path_start, held_blocks..admitted, touch, policy);
        // The fresh blocks are in already: a policy may choose them too, and so keep the newcomer out.
        let freed = self.make_room(Need::default(), policy);
        outcome.counters.admitted_blocks = u64::from(admitted - held_blocks);
        outcome.counters.rejected_blocks = u64::from(request.path_blocks - admitted);
        freed.count(&mut outcome.counters);
        outcome
    }

    /// The outcome of a request as far as its look-up tells.
    pub(crate) fn found(
        &self,
        request: &Request,
        held_blocks: u32,
        hit_blocks: u32,
        reaccessed_blocks: u32,
    ) -> Outcome {
        let no_states = self.config.state.map(|_| 0);
        Outcome {
            held_blocks,
            prefill: self.charge(request, hit_blocks),
            counters: Counters {
                hit_blocks: u64::from(hit_blocks),
                reaccessed_blocks: u64::from(reaccessed_blocks),
                saved_states: no_states,
                evicted_states: no_states,
                ..Counters::default()
            },
        }
    }

    /// Counts the blocks that were evicted and are asked for now for the first time since.
    pub(crate) fn note_reaccessed(&mut self, missing: &[BlockId]) -> u32 {
        let mut reaccessed = 0;
        for &block in missing {
            let owner = &mut self.owner[block.index()];
            if *owner == EVICTED {
                *owner = ABSENT;
                reaccessed += 1;
            }
        }
        reaccessed
    }

    /// Shows the request to the policy, and the nodes of its path if the policy wants them.
    pub(crate) fn observe(&mut self, view: &RequestView<'_>, policy: &mut dyn Policy) {
        self.path_facts.clear();
        if policy.wants_path_nodes() {
            // Taken out, because `candidate` borrows the whole cache; put back, to keep the allocation.
            let mut facts = std::mem::take(&mut self.path_facts);
            facts.extend(self.path_nodes.iter().map(|id| self.candidate(*id)));
            self.path_facts = facts;
        }
        policy.observe(view, &self.path_facts);
    }

    /// One use more for every node of the path, however many blocks it has.
    pub(crate) fn touch_path(&mut self, fresh: Touch) {
        for &id in &self.path_nodes {
            let node = &mut self.nodes[id];
            node.touch = node.touch.used_again(fresh);
        }
    }

    /// The path's last node is the only one of it that can be a leaf. It may be about to get a child.
    fn withdraw_last(&mut self, policy: &mut dyn Policy) {
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
            self.rival(policy)
        } else {
            None
        };
        let blocks = policy.admit(view, rival.as_ref());
        let held = view.held_blocks;
        if blocks < held || blocks > path {
            self.fault(PolicyFault::AdmissionOutOfRange { blocks, held, path });
        }
        let most = match self.config.evict_unit {
            // What does not fit is evicted again block by block, from the tail: the head of the path stays.
            EvictUnit::Block => path,
            // A newcomer longer than the cache would be evicted whole, so only what fits of it is let in.
            EvictUnit::Leaf | EvictUnit::LeafSglang => {
                let capacity_blocks = u32::try_from(self.capacity_blocks).unwrap_or(u32::MAX);
                path.min(capacity_blocks).max(held)
            }
        };
        blocks.clamp(held, most)
    }

    /// The node that would be evicted first.
    fn rival(&mut self, policy: &mut dyn Policy) -> Option<Candidate> {
        let id = policy.victim()?.id;
        if self.is_evictable(id) {
            return Some(self.candidate(id));
        }
        self.fault(PolicyFault::NotEvictable(id));
        None
    }

    /// Makes the `fresh` blocks of a path resident and offers its last node.
    fn insert(
        &mut self,
        path_start: usize,
        fresh: Range<u32>,
        touch: Touch,
        policy: &mut dyn Policy,
    ) {
        if !fresh.is_empty() {
            let parent = self.path_nodes.last().copied();
            let id = self.append(parent, path_start, fresh, touch);
            self.path_nodes.push(id);
        }
        if let Some(&last) = self.path_nodes.last() {
            self.offer_if_leaf(last, policy);
        }
    }
}
