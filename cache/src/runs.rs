//! The runs of the tree, in a slab.

use std::ops::{Index, IndexMut};

use policy_api::RunId;

/// What the requests that touched a run left behind. All blocks of a run share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) created: u32,
    pub(crate) last_used: u32,
    pub(crate) uses: u32,
    pub(crate) session: u64,
    pub(crate) step: u32,
    pub(crate) kind: u16,
}

/// A stretch of blocks on one path. Never empty while it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Where its blocks lie in the arena.
    pub(crate) start: usize,
    pub(crate) blocks: u32,
    pub(crate) depth_blocks: u32,
    pub(crate) parent: Option<RunId>,
    pub(crate) children: u32,
    /// The ids of all children, combined by exclusive or: the child's id where there is only one.
    pub(crate) children_xor: u32,
    pub(crate) children_seen: u32,
    pub(crate) pins: u32,
    pub(crate) touch: Touch,
    /// The policy was offered it and may choose it.
    pub(crate) on_offer: bool,
    /// A pin ended here once: the one reason for a split other than a touch.
    pub(crate) ends_pin: bool,
    /// A state is saved at its end; checkpoint models only.
    pub(crate) has_state: bool,
}

impl Run {
    /// Depth of its last block, counted from 1 at the root.
    pub(crate) fn end_blocks(&self) -> u32 {
        self.depth_blocks + self.blocks
    }

    pub(crate) fn only_child(&self) -> Option<RunId> {
        (self.children == 1).then_some(RunId(self.children_xor))
    }
}

/// A slab of runs. Freed ids are used again, the latest first.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    slots: Vec<Run>,
    free: Vec<RunId>,
}

impl Runs {
    pub(crate) fn insert(&mut self, run: Run) -> RunId {
        if let Some(id) = self.free.pop() {
            self[id] = run;
            return id;
        }
        let id = RunId(
            u32::try_from(self.slots.len()).expect("fewer runs than blocks, whose ids are 32 bits"),
        );
        self.slots.push(run);
        id
    }

    pub(crate) fn remove(&mut self, id: RunId) {
        self[id].blocks = 0;
        self.free.push(id);
    }

    pub(crate) fn add_child(&mut self, parent: RunId, child: RunId) {
        let parent = &mut self[parent];
        parent.children += 1;
        parent.children_xor ^= child.0;
    }

    pub(crate) fn remove_child(&mut self, parent: RunId, child: RunId) {
        let parent = &mut self[parent];
        parent.children -= 1;
        parent.children_xor ^= child.0;
    }

    /// The run of an id that may be anything.
    pub(crate) fn get(&self, id: RunId) -> Option<&Run> {
        self.slots.get(id.index()).filter(|run| run.blocks > 0)
    }

    /// All runs in id order.
    pub(crate) fn live(&self) -> impl Iterator<Item = (RunId, &Run)> {
        (0..)
            .map(RunId)
            .zip(&self.slots)
            .filter(|(_, run)| run.blocks > 0)
    }

    /// Slots in use or free: an upper bound of the number of runs.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }
}

impl Index<RunId> for Runs {
    type Output = Run;

    fn index(&self, id: RunId) -> &Run {
        &self.slots[id.index()]
    }
}

impl IndexMut<RunId> for Runs {
    fn index_mut(&mut self, id: RunId) -> &mut Run {
        &mut self.slots[id.index()]
    }
}
