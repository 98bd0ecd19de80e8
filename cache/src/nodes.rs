//! The nodes of the tree, in a slab.

use std::ops::{Index, IndexMut};

use policy_api::{NodeId, RequestIndex, Tick};

/// What the requests that touched a node left behind. All blocks of a node share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) created: Tick,
    pub(crate) last_used: Tick,
    pub(crate) last_request: RequestIndex,
    /// 0 while every request that brought its blocks in, or shares them, is still under way.
    pub(crate) uses: u32,
    pub(crate) session: u64,
    pub(crate) step: u32,
    pub(crate) kind: u16,
}

impl Touch {
    /// One use more, by the request that `fresh` tells of.
    pub(crate) fn used_again(self, fresh: Touch) -> Touch {
        Touch {
            created: self.created,
            uses: self.uses + 1,
            ..fresh
        }
    }
}

/// A stretch of blocks on one path. Never empty while it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Where its blocks lie in the arena.
    pub(crate) start: usize,
    pub(crate) blocks: u32,
    pub(crate) depth_blocks: u32,
    pub(crate) parent: Option<NodeId>,
    pub(crate) children: u32,
    /// The ids of all children, combined by exclusive or: the child's id where there is only one.
    pub(crate) children_xor: u32,
    pub(crate) children_seen: u32,
    /// Pins and leases whose path leads through it or ends here.
    pub(crate) pins: u32,
    pub(crate) touch: Touch,
    /// The policy was offered it and may choose it.
    pub(crate) evictable: bool,
    /// A pin or a lease ended here once: the one reason for a split other than a touch.
    pub(crate) ends_pin: bool,
    /// A state is saved at its end; checkpoint models only.
    pub(crate) has_state: bool,
}

impl Node {
    /// Depth of its last block, counted from 1 at the root.
    pub(crate) fn end_blocks(&self) -> u32 {
        self.depth_blocks + self.blocks
    }

    /// No request that uses it has finished yet, so nobody knows that its blocks were ever computed.
    pub(crate) fn is_provisional(&self) -> bool {
        self.touch.uses == 0
    }

    pub(crate) fn only_child(&self) -> Option<NodeId> {
        (self.children == 1).then_some(NodeId(self.children_xor))
    }
}

/// A slab of nodes. Freed ids are used again, the latest first.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    slots: Vec<Node>,
    free: Vec<NodeId>,
}

impl Nodes {
    pub(crate) fn insert(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.free.pop() {
            self[id] = node;
            return id;
        }
        let id = NodeId(
            u32::try_from(self.slots.len())
                .expect("fewer nodes than blocks, whose ids are 32 bits"),
        );
        self.slots.push(node);
        id
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        self[id].blocks = 0;
        self.free.push(id);
    }

    pub(crate) fn add_child(&mut self, parent: NodeId, child: NodeId) {
        let parent = &mut self[parent];
        parent.children += 1;
        parent.children_xor ^= child.0;
    }

    pub(crate) fn remove_child(&mut self, parent: NodeId, child: NodeId) {
        let parent = &mut self[parent];
        parent.children -= 1;
        parent.children_xor ^= child.0;
    }

    /// The node of an id that may be anything.
    pub(crate) fn get(&self, id: NodeId) -> Option<&Node> {
        self.slots.get(id.index()).filter(|node| node.blocks > 0)
    }

    /// All nodes in id order.
    pub(crate) fn live(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        (0..)
            .map(NodeId)
            .zip(&self.slots)
            .filter(|(_, node)| node.blocks > 0)
    }

    /// Slots in use or free: an upper bound of the number of nodes.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.slots[id.index()]
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.slots[id.index()]
    }
}
