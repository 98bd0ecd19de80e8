//! Pins: nodes that must not be evicted, whoever holds them.

use policy_api::{BlockId, NodeId, Policy, WithdrawReason};

use crate::Cache;

/// A pinned path. Give it back with [`Cache::unpin`]; it is not `Clone`, so it can be given back only once.
#[must_use = "a pin that is not given back holds its blocks for ever"]
#[derive(Debug)]
pub struct Pin {
    last_block: Option<BlockId>,
}

impl Cache<'_> {
    /// Pins the resident leading blocks of `path`: they are not evicted until the pin is given back. Pins nest.
    ///
    /// A pin is no use of the blocks. A request that runs holds a [`Lease`](crate::Lease) instead.
    pub fn pin(&mut self, path: &[BlockId], policy: &mut dyn Policy) -> Pin {
        let held_blocks = self.held_blocks(path);
        self.end_node_at_pin(path, held_blocks, policy);
        self.find_path_nodes(path, held_blocks);
        self.pin_path(0, WithdrawReason::Pinned, policy);
        Pin {
            last_block: held_blocks.checked_sub(1).map(|last| path[last as usize]),
        }
    }

    /// Gives a pin back.
    pub fn unpin(&mut self, pin: Pin, policy: &mut dyn Policy) {
        self.release(pin.last_block, policy);
    }

    /// Makes a node end where a pin does. What goes on below it is not pinned.
    fn end_node_at_pin(&mut self, path: &[BlockId], depth: u32, policy: &mut dyn Policy) {
        let Some(id) = self.node_at(path, depth) else {
            return;
        };
        let head_blocks = depth - self.nodes[id].depth_blocks;
        if head_blocks == self.nodes[id].blocks {
            return;
        }
        let head = self.split(id, head_blocks, policy);
        self.nodes[head].ends_pin = true;
        if self.nodes[id].evictable {
            policy.offer(&self.candidate(id));
        }
    }

    /// Pins the nodes of the path from depth `from_blocks` on, the deepest first.
    pub(crate) fn pin_path(
        &mut self,
        from_blocks: u32,
        why: WithdrawReason,
        policy: &mut dyn Policy,
    ) {
        for &id in self.path_nodes.iter().rev() {
            let node = &mut self.nodes[id];
            if node.depth_blocks < from_blocks {
                return;
            }
            node.pins += 1;
            if std::mem::take(&mut node.evictable) {
                policy.withdraw(id, why);
            }
            if self.nodes[id].pins == 1 {
                let state_bytes = self.bytes_of_saved_state(id);
                self.pinned_blocks += u64::from(self.nodes[id].blocks);
                self.pinned_state_bytes += state_bytes;
            }
        }
    }

    /// Takes one pin from every node of the path that ends with a block, the deepest first. A node that nobody pins any more is
    /// evictable again, or is dropped if nobody ever finished with it.
    pub(crate) fn release(&mut self, last_block: Option<BlockId>, policy: &mut dyn Policy) {
        let mut next = last_block.map(|block| NodeId(self.owner[block.index()]));
        while let Some(id) = next {
            let node = &mut self.nodes[id];
            node.pins -= 1;
            next = node.parent;
            let node = *node;
            if node.pins == 0 {
                self.pinned_blocks -= u64::from(node.blocks);
                self.pinned_state_bytes -= self.bytes_of_saved_state(id);
            }
            if node.pins == 0 && node.children == 0 && node.is_provisional() {
                self.drop_provisional(id, policy);
            } else {
                self.merge_or_offer(id, policy);
            }
        }
    }

    pub(crate) fn bytes_of_saved_state(&self, id: NodeId) -> u64 {
        if self.nodes[id].has_state {
            self.bytes_of_state(id)
        } else {
            0
        }
    }
}
