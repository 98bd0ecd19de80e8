//! The invariants of the tree, checked in debug builds and by tests.

use policy_api::{BlockId, NodeId, Tick};

use crate::nodes::Node;
use crate::{Cache, EVICTED, EvictUnit};

/// In a debug build every event is audited where a trace has no more blocks than this, which an audit looks at one by
/// one; else those events whose number is a power of two.
const SMALL_TRACE_BLOCKS: usize = 1024;

impl Cache<'_> {
    /// Checks every invariant of the tree.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut children = vec![(0, 0); self.nodes.slots()];
        let mut sums = Sums::default();
        for (id, node) in self.nodes.live() {
            self.audit_node(id, node)?;
            sums.add(node, self.bytes_of_saved_state(id));
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
        let counted = Sums {
            used_blocks: self.used_blocks,
            pinned_blocks: self.pinned_blocks,
            state_bytes: self.state_bytes,
            pinned_state_bytes: self.pinned_state_bytes,
        };
        if sums != counted {
            return Err(format!(
                "{sums:?} are there, counted otherwise: {counted:?}"
            ));
        }
        self.audit_capacity()?;
        let owned = self.owner.iter().filter(|owner| **owner < EVICTED).count() as u64;
        if owned == sums.used_blocks {
            Ok(())
        } else {
            Err(format!("{owned} blocks owned, {} used", sums.used_blocks))
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

    pub(crate) fn audit_in_debug_builds(&self) {
        let small = self.owner.len() <= SMALL_TRACE_BLOCKS;
        if cfg!(debug_assertions) && (small || self.now.0.is_power_of_two()) {
            let verdict = self.audit();
            assert!(
                verdict.is_ok(),
                "event {} of request {}: {verdict:?}",
                self.now,
                self.present
            );
        }
    }

    fn audit_node(&self, id: NodeId, node: &Node) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{id:?} {what}: {node:?}"));
        if self
            .blocks_of(node)
            .iter()
            .any(|block| self.owner[block.index()] != id.0)
        {
            return wrong("does not own its blocks");
        }
        if node.evictable != self.should_be_evictable(node) {
            return wrong("is evictable and should not be, or the other way round");
        }
        if node.is_provisional() && node.pins == 0 {
            return wrong("is provisional, and nobody holds it");
        }
        let Some(parent) = node.parent.map(|parent| self.nodes.get(parent)) else {
            return if node.depth_blocks == 0 {
                Ok(())
            } else {
                wrong("hangs in the air")
            };
        };
        let Some(parent) = parent else {
            return wrong("has a parent that was evicted");
        };
        if parent.end_blocks() != node.depth_blocks {
            return wrong("is not where its parent ends");
        }
        if parent.pins < node.pins {
            return wrong("has more pins than its parent");
        }
        if parent.is_provisional() && !node.is_provisional() {
            return wrong("was finished before its parent");
        }
        match self.config.state {
            Some(_) if parent.children == 1 && self.ends_nothing(parent, node) => {
                wrong("has a parent at whose end nothing is saved or parts")
            }
            None => self.audit_touches(parent, node).or_else(wrong),
            Some(_) => Ok(()),
        }
    }

    fn should_be_evictable(&self, node: &Node) -> bool {
        let saved = self.config.state.is_some() && node.has_state && node.children == 1;
        node.pins == 0 && (node.children == 0 || saved)
    }

    /// Where KV is per token, a touch of a node is a touch of all above, and nodes part where touches differ.
    fn audit_touches(&self, parent: &Node, node: &Node) -> Result<(), &'static str> {
        // A provisional node is younger than the parent that its request will touch when it finishes.
        if parent.touch.last_used < node.touch.last_used && !node.is_provisional() {
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
fn facts(node: &Node) -> (Tick, u32, Tick) {
    (node.touch.last_used, node.touch.uses, node.touch.created)
}

/// What the nodes add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    used_blocks: u64,
    pinned_blocks: u64,
    state_bytes: u64,
    pinned_state_bytes: u64,
}

impl Sums {
    fn add(&mut self, node: &Node, state_bytes: u64) {
        let is_pinned = u64::from(node.pins > 0);
        self.used_blocks += u64::from(node.blocks);
        self.pinned_blocks += is_pinned * u64::from(node.blocks);
        self.state_bytes += state_bytes;
        self.pinned_state_bytes += is_pinned * state_bytes;
    }
}
