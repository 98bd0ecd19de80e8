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

    /// Notes that something had to go: the cache is full, also where saved states fill it.
    pub(crate) fn is_full(&mut self) {
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
