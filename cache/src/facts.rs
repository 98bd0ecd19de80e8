//! The facts of nodes and requests, as policies see them.

use policy_api::{Candidate, CandidateKind, Hints, NodeId, Request, RequestView, StateBytes, Work};

use crate::nodes::{Node, Touch};
use crate::{Cache, Outcome};

impl<'t> Cache<'t> {
    /// The facts of a node as a policy sees them.
    pub(crate) fn candidate(&self, id: NodeId) -> Candidate {
        let node = &self.nodes[id];
        match self.config.state {
            None => self.candidate_part(id, node, 0),
            Some(state) => self.checkpoint_candidate(id, state),
        }
    }

    /// The facts of a node's part from block `from` on.
    pub(crate) fn candidate_part(&self, id: NodeId, node: &Node, from: u32) -> Candidate {
        let part = self.unpriced_part(id, node, from);
        Candidate {
            recompute: self.prefill_blocks(part.depth_blocks + part.blocks, part.depth_blocks),
            ..part
        }
    }

    /// The same without what it costs.
    fn unpriced_part(&self, id: NodeId, node: &Node, from: u32) -> Candidate {
        let depth_blocks = node.depth_blocks + from;
        let blocks = node.blocks - from;
        Candidate {
            id,
            parent: node.parent,
            first_block: self.arena[node.start + from as usize],
            last_block: self.arena[node.start + node.blocks as usize - 1],
            depth_blocks,
            blocks,
            base_blocks: depth_blocks,
            kind: CandidateKind::Leaf,
            bytes: u64::from(blocks) * self.config.block_bytes,
            created: node.touch.created,
            last_used: node.touch.last_used,
            last_request: node.touch.last_request,
            uses: node.touch.uses,
            last_session: node.touch.session,
            last_step: node.touch.step,
            last_kind: node.touch.kind,
            recompute: Work::default(),
            children_seen: node.children_seen,
        }
    }

    /// The facts of a node, or of the state at its end.
    pub(crate) fn checkpoint_candidate(&self, id: NodeId, state: StateBytes) -> Candidate {
        let node = &self.nodes[id];
        let of_state = if node.has_state {
            state.at(self.tokens(node.end_blocks()))
        } else {
            0
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
            recompute: if node.has_state {
                self.prefill_blocks(node.end_blocks(), base_blocks)
            } else {
                Work::default()
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

    /// The request as a policy sees it, once it is known what it found.
    pub(crate) fn view<'a>(
        &self,
        request: &Request,
        hints: Option<&'a Hints>,
        found: &Outcome,
    ) -> RequestView<'a>
    where
        't: 'a,
    {
        RequestView {
            index: self.present,
            now: self.now,
            arrival_us: request.arrival_us,
            session: request.session_id,
            step: request.step,
            kind: request.kind,
            tool: request.tool,
            tenant: request.tenant,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            path: self.path(request),
            prompt_blocks: request.prompt_blocks,
            held_blocks: found.held_blocks,
            hit_blocks: found.counters.hit_blocks as u32,
            prefill: found.prefill,
            hints,
        }
    }

    /// What the present request leaves behind on blocks that become resident with it.
    pub(crate) fn first_touch(&self, request: &Request) -> Touch {
        Touch {
            created: self.now,
            last_used: self.now,
            last_request: self.present,
            uses: 1,
            session: request.session_id,
            step: request.step,
            kind: request.kind,
        }
    }

    /// The prefill of a request that hits so many blocks.
    pub(crate) fn charge(&self, request: &Request, hit_blocks: u32) -> Work {
        self.cost
            .prefill(u64::from(request.prompt_tokens), self.tokens(hit_blocks))
    }

    /// What losing the blocks from `cached` to `total` adds to a prompt that goes on.
    fn prefill_blocks(&self, total: u32, cached: u32) -> Work {
        self.cost.marginal(self.tokens(total), self.tokens(cached))
    }

    pub(crate) fn tokens(&self, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(self.config.block_tokens)
    }
}
