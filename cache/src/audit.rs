//! The invariants of the tree, checked in debug builds and by tests.

use policy_api::{BlockId, RunId};

use crate::runs::Run;
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
        let mut children = vec![(0, 0); self.runs.slots()];
        let (mut used, mut pinned, mut state_bytes) = (0, 0, 0);
        for (id, run) in self.runs.live() {
            self.audit_run(id, run)?;
            used += u64::from(run.blocks);
            pinned += if run.pins > 0 {
                u64::from(run.blocks)
            } else {
                0
            };
            if let (Some(state), true) = (self.shape.state, run.has_state) {
                state_bytes += state.at(self.tokens(run.end_blocks()));
            }
            if let Some(parent) = run.parent {
                let (count, xor) = &mut children[parent.index()];
                *count += 1;
                *xor ^= id.0;
            }
        }
        for (id, run) in self.runs.live() {
            if children[id.index()] != (run.children, run.children_xor) {
                return Err(format!(
                    "{id:?} counts {} children, has {}",
                    run.children,
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
        let (used, most) = (self.used_bytes(), self.shape.capacity_bytes);
        if used > most {
            return Err(format!("{used} bytes are used of {most}"));
        }
        let usage = self.usage();
        let sum = usage.free_blocks + usage.evictable_blocks + usage.pinned_blocks;
        if self.shape.state.is_none() && sum != self.capacity_blocks {
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

    fn audit_run(&self, id: RunId, run: &Run) -> Result<(), String> {
        let wrong = |what: &str| Err(format!("{id:?} {what}: {run:?}"));
        if self
            .blocks_of(run)
            .iter()
            .any(|block| self.owner[*block as usize] != id.0)
        {
            return wrong("does not own its blocks");
        }
        if run.on_offer != self.may_go(run) {
            return wrong("is on offer and should not be, or the other way round");
        }
        let Some(parent) = run.parent.map(|parent| self.runs.get(parent)) else {
            return if run.depth_blocks == 0 {
                Ok(())
            } else {
                wrong("hangs in the air")
            };
        };
        let Some(parent) = parent else {
            return wrong("has a parent that is gone");
        };
        if parent.end_blocks() != run.depth_blocks {
            return wrong("is not where its parent ends");
        }
        if parent.pins < run.pins {
            return wrong("has more pins than its parent");
        }
        match self.shape.state {
            Some(_) if !parent.has_state && parent.children == 1 && parent.pins == run.pins => {
                wrong("has a parent at whose end nothing is saved or parts")
            }
            None => self.audit_touches(parent, run).or_else(wrong),
            Some(_) => Ok(()),
        }
    }

    fn may_go(&self, run: &Run) -> bool {
        let saved = self.shape.state.is_some() && run.has_state && run.children == 1;
        run.pins == 0 && (run.children == 0 || saved)
    }

    /// Where KV is per token, a touch of a run is a touch of all above, and runs part where touches differ.
    fn audit_touches(&self, parent: &Run, run: &Run) -> Result<(), &'static str> {
        if parent.touch.last_used < run.touch.last_used {
            return Err("has a later use than its parent");
        }
        let mergeable = parent.children == 1 && facts(parent) == facts(run) && !parent.ends_pin;
        if self.shape.evict_unit == EvictUnit::Block && mergeable {
            return Err("shares all facts with its parent, whose only child it is");
        }
        Ok(())
    }

    fn blocks_of(&self, run: &Run) -> &[BlockId] {
        &self.arena[run.start..run.start + run.blocks as usize]
    }
}

/// The facts whose difference is a touch boundary.
fn facts(run: &Run) -> (u32, u32, u32) {
    (run.touch.last_used, run.touch.uses, run.touch.created)
}
