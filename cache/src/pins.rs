//! Pins: a path in use by a running request, which must not go.

use policy_api::{BlockId, Policy, RunId, Why};

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
            let tail = RunId(self.owner[last_block as usize]);
            let end = self.end_pin_at(tail, held_blocks - self.runs[tail].depth_blocks, policy);
            self.pin_up_from(end, policy);
        }
        Pin { last_block }
    }

    /// Gives a pin back.
    pub fn unpin(&mut self, pin: Pin, policy: &mut dyn Policy) {
        let mut next = pin
            .last_block
            .map(|block| RunId(self.owner[block as usize]));
        while let Some(id) = next {
            let run = &mut self.runs[id];
            run.pins -= 1;
            next = run.parent;
            if run.pins == 0 {
                self.pinned_blocks -= u64::from(run.blocks);
            }
            self.settle(id, policy);
        }
    }

    /// The run that ends where the pin does, cut off from what goes on below it.
    fn end_pin_at(&mut self, id: RunId, head_blocks: u32, policy: &mut dyn Policy) -> RunId {
        if head_blocks == self.runs[id].blocks {
            return id;
        }
        let head = self.split(id, head_blocks, policy);
        self.runs[head].ends_pin = true;
        if self.runs[id].on_offer {
            policy.offer(&self.candidate(id));
        }
        head
    }

    fn pin_up_from(&mut self, end: RunId, policy: &mut dyn Policy) {
        let mut next = Some(end);
        while let Some(id) = next {
            let run = &mut self.runs[id];
            run.pins += 1;
            next = run.parent;
            if run.pins == 1 {
                self.pinned_blocks += u64::from(run.blocks);
            }
            if std::mem::take(&mut run.on_offer) {
                policy.withdraw(id, Why::Pinned);
            }
        }
    }
}
