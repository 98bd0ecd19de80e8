//! How the tree changes: nodes split, are appended, merge, and become evictable.

use std::ops::Range;

use policy_api::{BlockId, NodeId, Policy};

use crate::nodes::{Node, Touch};
use crate::{Cache, EvictUnit};

/// The two nodes that one became.
#[derive(Clone, Copy)]
pub(crate) struct Split {
    pub(crate) head: NodeId,
    pub(crate) tail: NodeId,
}

impl Cache<'_> {
    /// Splits the node that holds the first `depth` blocks of the path, if it goes on below them.
    pub(crate) fn split_at(
        &mut self,
        path: &[BlockId],
        depth: u32,
        policy: &mut dyn Policy,
    ) -> Option<Split> {
        let tail = self.node_at(path, depth)?;
        let node = &self.nodes[tail];
        let head_blocks = depth - node.depth_blocks;
        if head_blocks == node.blocks {
            return None;
        }
        let head = self.split(tail, head_blocks, policy);
        if self.config.evict_unit == EvictUnit::LeafSglang {
            self.stamp(tail);
        }
        if self.nodes[tail].evictable {
            policy.offer(&self.candidate(tail));
        }
        Some(Split { head, tail })
    }

    /// Makes the node as recent as the present request, without a use.
    pub(crate) fn stamp(&mut self, id: NodeId) {
        let touch = &mut self.nodes[id].touch;
        touch.last_used = self.now;
        touch.last_request = self.present;
    }

    /// Splits a node in two. The tail keeps the id, because its children name it as their parent; the head gets a new one.
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
        self.own(node.start..node.start + head_blocks as usize, head);
        policy.split(head, tail);
        head
    }

    /// Collects the nodes that hold the first `held_blocks` of the path, from the root.
    pub(crate) fn find_path_nodes(&mut self, path: &[BlockId], held_blocks: u32) {
        self.path_nodes.clear();
        let mut next = self.node_at(path, held_blocks);
        while let Some(id) = next {
            self.path_nodes.push(id);
            next = self.nodes[id].parent;
        }
        self.path_nodes.reverse();
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
        self.own(start..start + blocks as usize, id);
        self.used_blocks += u64::from(blocks);
        id
    }

    /// Writes down who holds a stretch of the arena.
    pub(crate) fn own(&mut self, stretch: Range<usize>, id: NodeId) {
        for &block in &self.arena[stretch] {
            self.owner[block.index()] = id.0;
        }
    }

    /// Removes a leaf. Its blocks are the caller's to disown.
    pub(crate) fn remove_leaf(&mut self, id: NodeId) -> Option<NodeId> {
        let node = self.nodes[id];
        self.used_blocks -= u64::from(node.blocks);
        self.nodes.remove(id);
        if let Some(parent) = node.parent {
            self.nodes.remove_child(parent, id);
        }
        node.parent
    }

    /// Offers a leaf that nobody pins.
    pub(crate) fn offer_if_leaf(&mut self, id: NodeId, policy: &mut dyn Policy) {
        let node = &mut self.nodes[id];
        if node.children == 0 && node.pins == 0 {
            node.evictable = true;
            policy.offer(&self.candidate(id));
        }
    }

    /// Offers a node that may be evicted. In checkpoint models, merges it with its only child where nothing ends at its end.
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
        } else if self.ends_nothing(node, &self.nodes[child]) {
            self.merge(id, child, policy);
        }
    }

    /// In checkpoint models, whether a node and its only child may as well be one: nothing is saved between them, no lease ends
    /// there, and they are computed together or not at all.
    pub(crate) fn ends_nothing(&self, node: &Node, only_child: &Node) -> bool {
        !node.has_state
            && node.pins == only_child.pins
            && node.is_provisional() == only_child.is_provisional()
    }

    /// Makes one node of a node and its only child, whose id and history stay.
    pub(crate) fn merge(&mut self, head: NodeId, tail: NodeId, policy: &mut dyn Policy) {
        let above = self.nodes[head];
        self.own(above.start..above.start + above.blocks as usize, tail);
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
}
