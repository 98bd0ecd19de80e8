//! Pins: a path in use by a running request, which must not go.

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
    pub fn pin(&mut self, path: &[BlockId], policy: &mut dyn Policy) -> Pin {
        let held_blocks = self.held_blocks(path);
        let last_block = held_blocks.checked_sub(1).map(|last| path[last as usize]);
        if let Some(last_block) = last_block {
            let tail = NodeId(self.owner[last_block as usize]);
            let end = self.end_pin_at(tail, held_blocks - self.nodes[tail].depth_blocks, policy);
            self.pin_up_from(end, policy);
        }
        Pin { last_block }
    }

    /// Gives a pin back.
    pub fn unpin(&mut self, pin: Pin, policy: &mut dyn Policy) {
        let mut next = pin
            .last_block
            .map(|block| NodeId(self.owner[block as usize]));
        while let Some(id) = next {
            let node = &mut self.nodes[id];
            node.pins -= 1;
            next = node.parent;
            if node.pins == 0 {
                self.pinned_blocks -= u64::from(node.blocks);
            }
            self.merge_or_offer(id, policy);
        }
    }

    /// The node that ends where the pin does, split_at off from what goes on below it.
    fn end_pin_at(&mut self, id: NodeId, head_blocks: u32, policy: &mut dyn Policy) -> NodeId {
        if head_blocks == self.nodes[id].blocks {
            return id;
        }
        let head = self.split(id, head_blocks, policy);
        self.nodes[head].ends_pin = true;
        if self.nodes[id].evictable {
            policy.offer(&self.candidate(id));
        }
        head
    }

    fn pin_up_from(&mut self, end: NodeId, policy: &mut dyn Policy) {
        let mut next = Some(end);
        while let Some(id) = next {
            let node = &mut self.nodes[id];
            node.pins += 1;
            next = node.parent;
            if node.pins == 1 {
                self.pinned_blocks += u64::from(node.blocks);
            }
            if std::mem::take(&mut node.evictable) {
                policy.withdraw(id, WithdrawReason::Pinned);
            }
        }
    }
}
