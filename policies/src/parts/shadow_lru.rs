//! What an LRU cache would hold, without the cache.

use std::collections::VecDeque;

use policy_api::BlockId;

/// The residents of a tree-aware LRU cache that evicts block by block, under any admission.
///
/// Of the path of a request, later requests take over a leading part and eviction takes a tail, so that what the request was the
/// last to use is a range of depths. With room for six blocks:
///
/// ```text
///                        left of request 1     left of request 2     resident
///   1 uses  a b c d      0..4  a b c d                               4
///   2 uses  a b x y      2..4      c d         0..4  a b x y         6
///   3 uses  z            2..3      c           0..4  a b x y         6, z included: d was the deepest of the oldest request
/// ```
///
/// A block is resident if its depth is still in the range of the request that used it last. So a request costs one load and one
/// store per block, and eviction nothing that grows.
pub(crate) struct ShadowLru {
    capacity_blocks: u64,
    resident_blocks: u64,
    /// The request that used each block last, counted from 1; 0 for none.
    used_by: Vec<u32>,
    /// What is left of every request, the oldest first.
    left: VecDeque<Left>,
    /// The request that is the first of them.
    oldest: u32,
}

/// The blocks that a request was the last to use, as depths on its path.
struct Left {
    start: u32,
    end: u32,
    /// The deepest block that was resident after the request.
    deepest: BlockId,
}

impl Left {
    fn blocks(&self) -> u32 {
        self.end.saturating_sub(self.start)
    }
}

impl ShadowLru {
    pub(crate) fn new(capacity_blocks: u64) -> Self {
        Self {
            capacity_blocks,
            resident_blocks: 0,
            used_by: Vec::new(),
            left: VecDeque::new(),
            oldest: 1,
        }
    }

    /// A request uses what is resident of its path. Returns how many leading blocks that are.
    pub(crate) fn touch(&mut self, path: &[BlockId]) -> u32 {
        let mut held = 0;
        while let Some(&block) = path.get(held as usize)
            && let Some(left) = self.left_of_last_user(block)
            && held < left.end
        {
            left.start = held + 1;
            self.used_by[block.index()] = self.oldest + self.left.len() as u32;
            held += 1;
        }
        self.left.push_back(Left {
            start: 0,
            end: held,
            deepest: held
                .checked_sub(1)
                .map_or(BlockId(0), |last| path[last as usize]),
        });
        held
    }

    fn left_of_last_user(&mut self, block: BlockId) -> Option<&mut Left> {
        let used_by = self.used_by.get(block.index())?;
        self.left
            .get_mut(used_by.checked_sub(self.oldest)? as usize)
    }

    /// Blocks that can be admitted without an eviction.
    pub(crate) fn free_blocks(&self) -> u64 {
        self.capacity_blocks.saturating_sub(self.resident_blocks)
    }

    /// The block that would be evicted first, or one that was below it; none of the path that was touched last.
    pub(crate) fn victim(&mut self) -> Option<BlockId> {
        while self.left.len() > 1 && self.left[0].blocks() == 0 {
            self.forget_oldest();
        }
        let oldest = self.left.front().filter(|_| self.left.len() > 1)?;
        Some(oldest.deepest)
    }

    /// Of the path that was touched last, of which `held` were resident, so many leading blocks are admitted. What is too much is
    /// evicted.
    pub(crate) fn admit(&mut self, path: &[BlockId], held: u32, blocks: u32) {
        let now = self.oldest + self.left.len() as u32 - 1;
        for &block in &path[held as usize..blocks as usize] {
            if block.index() >= self.used_by.len() {
                self.used_by.resize(block.index() + 1, 0);
            }
            self.used_by[block.index()] = now;
        }
        if blocks > held
            && let Some(left) = self.left.back_mut()
        {
            left.end = blocks;
            left.deepest = path[blocks as usize - 1];
            self.resident_blocks += u64::from(blocks - held);
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.resident_blocks > self.capacity_blocks
            && let Some(left) = self.left.front_mut()
        {
            let too_many = self.resident_blocks - self.capacity_blocks;
            let evicted = u64::from(left.blocks()).min(too_many);
            left.end -= evicted as u32;
            self.resident_blocks -= evicted;
            if left.blocks() == 0 {
                self.forget_oldest();
            }
        }
    }

    fn forget_oldest(&mut self) {
        self.left.pop_front();
        self.oldest += 1;
    }
}

#[cfg(test)]
mod tests {
    use policy_api::{AdmissionPolicy, Candidate, Pair, RequestView};
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Trace, ask, pair_seeded};

    /// Admits what it is told to, and checks against the cache what is held.
    struct Checked {
        shadow: ShadowLru,
        /// Per request how many fresh blocks may come in.
        fresh: Vec<u32>,
    }

    impl AdmissionPolicy for Checked {
        fn needs_rival(&self) -> bool {
            true
        }

        fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
            let held = self.shadow.touch(request.path);
            assert_eq!(held, request.held_blocks);
            assert_eq!(self.shadow.victim().is_some(), rival.is_some());
            let fresh = self.fresh[request.index.index()];
            let blocks = (held + fresh).min(request.path.len() as u32);
            self.shadow.admit(request.path, held, blocks);
            blocks
        }
    }

    proptest! {
        #[test]
        fn holds_what_an_lru_cache_holds(
            asked in prop::collection::vec(("[abc]{0,6}", 0u32..7), 1..80),
            capacity_blocks in 0u64..12,
        ) {
            let (paths, fresh): (Vec<_>, Vec<_>) =
                asked.into_iter().map(|(path, fresh)| (ask(&path), fresh)).unzip();
            let mut pair = Pair {
                admission: Box::new(Checked { shadow: ShadowLru::new(capacity_blocks), fresh }),
                ..pair_seeded("lru", capacity_blocks, 0)
            };
            Trace::new(&paths).admitted(capacity_blocks, &mut pair);
        }
    }

    #[test]
    fn the_victim_is_of_the_least_recent_request() {
        let mut shadow = ShadowLru::new(3);
        for path in [&[0, 1][..], &[2], &[0]] {
            let path: Vec<_> = path.iter().copied().map(BlockId).collect();
            let held = shadow.touch(&path);
            shadow.admit(&path, held, path.len() as u32);
        }
        assert_eq!(shadow.free_blocks(), 0);
        shadow.touch(&[BlockId(3)]);
        assert_eq!(shadow.victim(), Some(BlockId(1)));
    }
}
