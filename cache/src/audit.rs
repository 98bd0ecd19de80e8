//! The invariants of the tree, checked in debug builds and by tests.

use policy_api::{BlockId, NodeId};

use crate::nodes::Node;
use crate::{Cache, EVICTED, EvictUnit};

/// In a debug build every request is audited where a trace has no more blocks than this, which an audit looks at one by
/// one; else those whose index is a power of two.
const SMALL_TRACE_BLOCKS: usize = 1024;

impl Cache<'_> {
    /// Checks every invariant of the tree.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut children = vec![(0, 0); self.nodes.slots()];
        let (mut used, mut pinned, mut state_bytes) = (0, 0, 0);
        for (id, node) in self.nodes.live() {
            self.audit_run(id, node)?;
            used += u64::from(node.blocks);
            pinned += if node.pins > 0 {
                u64::from(node.blocks)
            } else {
                0
            };
            if let (Some(state), true) = (self.config.state, node.has_state) {
                state_bytes += state.at(self.tokens(node.end_blocks()));
            }
            if let Some(parent) = node.parent {
                let (count, xor) = &mut children[parent.index()];
                *count += 1;
                *xor ^= id.0;
            }
        }
        for (id, node) in self.nodes.live() {
            if children[id.index()] != (node.children, node.children_xor) {
                return Err(format!(
                    "{id:?} counts {} children, has {}",
                    node.children,
                    children[id.index()].0
                ));
            }
        }
        let counted = (self.used_blocks, self.pinned_blocks, self.state_bytes);
        if (used, pinned, state_bytes) != counted {
            return Err(format!(
                "{used} blocks used, {pinned} pinned and {state_bytes} bytes of states, counted otherwise: {counted:?}"
            ));
        }
        self.audit_capacity()?;
        let owned = self.owner.iter().filter(|owner| **owner < EVICTED).count() as u64;
        if owned == used {
            Ok(())
        } else {
            Err(format!("{owned} blocks owned, {used} used"))
        }
    }

    fn audit_capacity(&self) -> Result<(), String> {
        let (used, most) = (self.used_bytes(), self.config.capacity_bytes);
        if used > most {
            return Err(format!("{used} bytes are used of {most}"));
        }
        let usage = self.usage();
        let sum = usage.free_blocks + usage.evictable_blocks + usage.pinned_blocks;
        if self.config.state.is_none() && sum != self.capacity_blocks {
            return Err(format!(
                "{usage:?} do not add up to {}",
                self.capacity_blocks
            ));
        }
        Ok(())
    }

    pub(crate) fn audit_in_debug_builds(&self, index: u32) {
        let small = self.owner.len() <= SMALL_TRACE_BLOCKS;
        if cfg!(debug_assertions) && (small || index.is_power_of_two()) {
            let verdict = self.audit();
            assert!(verdict.is_ok(), "after request {index}: {verdict:?}");
        }
    }

    fn audit_run(&self, id: NodeId, node: &Node) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{id:?} {what}: {node:?}"));
        if self
            .blocks_of(node)
            .iter()
            .any(|block| self.owner[*block as usize] != id.0)
        {
            return wrong("does not own its blocks");
        }
        if node.evictable != self.may_go(node) {
            return wrong("is evictable and should not be, or the other way round");
        }
        let Some(parent) = node.parent.map(|parent| self.nodes.get(parent)) else {
            return if node.depth_blocks == 0 {
                Ok(())
            } else {
                wrong("hangs in the air")
            };
        };
        let Some(parent) = parent else {
            return wrong("has a parent that is evicted");
        };
        if parent.end_blocks() != node.depth_blocks {
            return wrong("is not where its parent ends");
        }
        if parent.pins < node.pins {
            return wrong("has more pins than its parent");
        }
        match self.config.state {
            Some(_) if !parent.has_state && parent.children == 1 && parent.pins == node.pins => {
                wrong("has a parent at whose end nothing is saved or parts")
            }
            None => self.audit_touches(parent, node).or_else(wrong),
            Some(_) => Ok(()),
        }
    }

    fn may_go(&self, node: &Node) -> bool {
        let saved = self.config.state.is_some() && node.has_state && node.children == 1;
        node.pins == 0 && (node.children == 0 || saved)
    }

    /// Where KV is per token, a touch of a node is a touch of all above, and nodes part where touches differ.
    fn audit_touches(&self, parent: &Node, node: &Node) -> Result<(), &'static str> {
        if parent.touch.last_used < node.touch.last_used {
            return Err("has a later use than its parent");
        }
        let mergeable = parent.children == 1 && facts(parent) == facts(node) && !parent.ends_pin;
        if self.config.evict_unit == EvictUnit::Block && mergeable {
            return Err("shares all facts with its parent, whose only child it is");
        }
        Ok(())
    }

    fn blocks_of(&self, node: &Node) -> &[BlockId] {
        &self.arena[node.start..node.start + node.blocks as usize]
    }
}

/// The facts whose difference is a touch boundary.
fn facts(node: &Node) -> (u32, u32, u32) {
    (node.touch.last_used, node.touch.uses, node.touch.created)
}
