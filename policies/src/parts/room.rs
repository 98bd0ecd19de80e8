//! How much of the cache is free, as far as an admission policy can tell.

use policy_api::RequestView;

/// Counts what was admitted. As long as that is less than the capacity the rest is free; from then on the cache is full,
/// since it evicts no more than it must.
pub(crate) struct Room {
    free_blocks: u64,
}

impl Room {
    pub(crate) fn new(capacity_blocks: u64) -> Self {
        Self {
            free_blocks: capacity_blocks,
        }
    }

    /// Notes that something had to go: the cache is full, though it may be saved states that fill it.
    pub(crate) fn evicted(&mut self) {
        self.free_blocks = 0;
    }

    /// How many leading blocks of the path need no eviction.
    pub(crate) fn fits(&self, request: &RequestView<'_>) -> u32 {
        let path = request.path.len() as u32;
        let free = u32::try_from(self.free_blocks).unwrap_or(u32::MAX);
        request.held_blocks.saturating_add(free).min(path)
    }

    /// Notes that so many leading blocks of the path are resident now.
    pub(crate) fn admit(&mut self, request: &RequestView<'_>, blocks: u32) {
        let fresh = u64::from(blocks - request.held_blocks);
        self.free_blocks = self.free_blocks.saturating_sub(fresh);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::BlockId;

    use super::*;
    use crate::testing::view;

    #[test]
    fn what_is_free_is_what_was_not_admitted_until_something_goes() {
        let path: Vec<_> = (0..9).map(BlockId).collect();
        let request = RequestView {
            held_blocks: 2,
            ..view(&path)
        };
        let mut room = Room::new(6);
        assert_eq!(room.fits(&request), 8);
        room.admit(&request, 5);
        assert_eq!(room.fits(&request), 5);
        room.evicted();
        assert_eq!(room.fits(&request), 2);
    }
}
