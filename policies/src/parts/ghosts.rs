//! What was evicted and is not forgotten yet.

use std::collections::VecDeque;

use policy_api::{BlockId, RequestView};
use rustc_hash::FxHashMap;

/// Pieces of nodes that went, by their first block, each with its length and something to remember of it. The oldest are
/// forgotten first.
pub(crate) struct Ghosts<V> {
    entries: FxHashMap<BlockId, Ghost<V>>,
    /// First block and stamp, the oldest first. An entry with another stamp than its ghost is stale.
    order: VecDeque<(BlockId, u64)>,
    blocks: u64,
    stamps: u64,
    /// What the present request asked for again, and its first block.
    returned: Option<(BlockId, V)>,
}

struct Ghost<V> {
    stamp: u64,
    blocks: u32,
    memory: V,
}

/// Stale entries are swept out when they outnumber live ones by this factor (and this number).
const STALE_FACTOR: usize = 4;
const STALE_FLOOR: usize = 64;

impl<V> Ghosts<V> {
    pub(crate) fn new() -> Self {
        Self {
            entries: FxHashMap::default(),
            order: VecDeque::new(),
            blocks: 0,
            stamps: 0,
            returned: None,
        }
    }

    /// Remembers a piece as the youngest, in place of one that began with the same block. Where nothing but a saved state went
    /// there is no piece to remember.
    pub(crate) fn remember(&mut self, first_block: BlockId, blocks: u32, memory: V) {
        if blocks == 0 {
            return;
        }
        self.recall(first_block);
        self.stamps += 1;
        let stamp = self.stamps;
        self.order.push_back((first_block, stamp));
        self.blocks += u64::from(blocks);
        self.entries.insert(
            first_block,
            Ghost {
                stamp,
                blocks,
                memory,
            },
        );
        if self.order.len() > STALE_FLOOR + STALE_FACTOR * self.entries.len() {
            let entries = &self.entries;
            self.order
                .retain(|(block, stamp)| entries.get(block).is_some_and(|g| g.stamp == *stamp));
        }
    }

    /// Takes out the piece that the request asks for again, if there is one: the one that began with its first missing
    /// block. Says whether there is.
    pub(crate) fn look_up(&mut self, request: &RequestView<'_>) -> bool {
        let missing = request.path.get(request.held_blocks as usize);
        self.returned = missing.and_then(|block| Some((*block, self.recall(*block)?)));
        self.returned.is_some()
    }

    /// What the present request asked for again.
    pub(crate) fn returned(&self) -> Option<&V> {
        self.returned.as_ref().map(|(_, memory)| memory)
    }

    /// What was remembered of the node with this first block when the request that brought it in looked it up.
    pub(crate) fn take_returned(&mut self, first_block: BlockId) -> Option<V> {
        self.returned
            .take_if(|(block, _)| *block == first_block)
            .map(|(_, memory)| memory)
    }

    /// Takes out what is remembered of the piece that began with this block.
    pub(crate) fn recall(&mut self, first_block: BlockId) -> Option<V> {
        let ghost = self.entries.remove(&first_block)?;
        self.blocks -= u64::from(ghost.blocks);
        Some(ghost.memory)
    }

    /// What is remembered of all pieces, in no order that means anything.
    pub(crate) fn memories(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|ghost| &ghost.memory)
    }

    /// Pieces.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Blocks of all pieces.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Forgets the oldest pieces until at most so many blocks are left.
    pub(crate) fn trim(&mut self, most_blocks: u64) {
        while self.blocks > most_blocks && self.forget_oldest().is_some() {}
    }

    /// Forgets the oldest piece.
    pub(crate) fn forget_oldest(&mut self) -> Option<V> {
        while let Some((block, stamp)) = self.order.pop_front() {
            if self.entries.get(&block).is_some_and(|g| g.stamp == stamp) {
                return self.recall(block);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut ghosts = Ghosts::new();
        ghosts.remember(BlockId(1), 2, 'a');
        ghosts.remember(BlockId(2), 3, 'b');
        ghosts.remember(BlockId(1), 1, 'c');
        assert_eq!(ghosts.blocks(), 4);
        ghosts.trim(3);
        assert_eq!(
            (ghosts.recall(BlockId(2)), ghosts.recall(BlockId(1))),
            (None, Some('c'))
        );
        assert_eq!((ghosts.blocks(), ghosts.forget_oldest()), (0, None));
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        let mut ghosts = Ghosts::new();
        for _ in 0..10_000 {
            ghosts.remember(BlockId(7), 1, ());
        }
        assert!(ghosts.order.len() <= STALE_FLOOR + STALE_FACTOR + 1);
    }
}
