//! Admitted only if asked for more often than the rarest resident.
//!
//! A count is a block of a request's path, as LMCache counts keys; counters are exact. To know the residents it hears what was evicted.
//! While there is room, all are admitted.

use policy_api::{AdmissionPolicy, BlockId, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};
use crate::parts::room::Room;
use params::{Domain, Param};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "lmcache",
    summary: "admit blocks counted more often than the rarest resident; exact counters, halved now and then",
    source: "LMCache (frequency-based admission)",
    idea: "Whatever is rarer than everything in the cache should not be admitted.",
    cost: "two stores per block of the path; 12 bytes for every block ever seen",
    avoid_when: "most reuse is soon after the first use, as by the next turn of a conversation",
    params: &[Param {
        name: "halve-after",
        default: "20000",
        domain: Domain::Count(1, 1_000_000_000_000),
        help: "block counts after which all counters are halved",
    }],
    track: Track::Online,
    build: |context, params| {
        let halve_after = params.count("halve-after").unwrap_or(u64::MAX);
        Box::new(LmCache::new(context.cache.capacity_blocks(), halve_after))
    },
};

/// What is known of a block.
#[derive(Clone, Copy, Default)]
struct Seen {
    count: u32,
    /// Halvings when the count was right.
    halvings: u32,
    resident: bool,
    /// The block above it, for one that is not a root.
    above: BlockId,
}

struct LmCache {
    halve_after: u64,
    counted: u64,
    halvings: u32,
    blocks: Vec<Seen>,
    /// Resident blocks by their count.
    residents: Vec<u64>,
    room: Room,
}

impl LmCache {
    fn new(capacity_blocks: u64, halve_after: u64) -> Self {
        Self {
            halve_after,
            counted: 0,
            halvings: 0,
            blocks: Vec::new(),
            residents: Vec::new(),
            room: Room::new(capacity_blocks),
        }
    }

    fn count_path(&mut self, path: &[BlockId]) {
        for (position, &block) in path.iter().enumerate() {
            let before = self.count(block);
            let seen = &mut self.blocks[block.index()];
            seen.count = before + 1;
            seen.halvings = self.halvings;
            seen.above = position.checked_sub(1).map_or(block, |above| path[above]);
            if seen.resident {
                *self.residents(before) -= 1;
                *self.residents(before + 1) += 1;
            }
        }
        self.counted += path.len() as u64;
        while self.counted >= self.halve_after {
            self.counted -= self.halve_after;
            self.halve();
        }
    }

    /// The block's count, with the halvings since it was counted last.
    fn count(&mut self, block: BlockId) -> u32 {
        if block.index() >= self.blocks.len() {
            self.blocks.resize(block.index() + 1, Seen::default());
        }
        let seen = self.blocks[block.index()];
        seen.count
            .checked_shr(self.halvings - seen.halvings)
            .unwrap_or(0)
    }

    fn residents(&mut self, count: u32) -> &mut u64 {
        if count as usize >= self.residents.len() {
            self.residents.resize(count as usize + 1, 0);
        }
        &mut self.residents[count as usize]
    }

    fn halve(&mut self) {
        self.halvings += 1;
        for count in 1..self.residents.len() {
            let blocks = std::mem::take(&mut self.residents[count]);
            self.residents[count / 2] += blocks;
        }
    }

    fn set_resident(&mut self, block: BlockId, resident: bool) {
        let count = self.count(block);
        let seen = &mut self.blocks[block.index()];
        if std::mem::replace(&mut seen.resident, resident) == resident {
            return;
        }
        let blocks = self.residents(count);
        *blocks = if resident { *blocks + 1 } else { *blocks - 1 };
    }

    fn rarest_resident(&self) -> Option<u32> {
        let rarest = self.residents.iter().position(|blocks| *blocks > 0)?;
        Some(rarest as u32)
    }
}

impl AdmissionPolicy for LmCache {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        self.count_path(request.path);
        let mut blocks = self.room.fits(request);
        if let Some(to_beat) = self.rarest_resident() {
            while let Some(&block) = request.path.get(blocks as usize)
                && self.count(block) > to_beat
            {
                blocks += 1;
            }
        }
        for &block in &request.path[request.held_blocks as usize..blocks as usize] {
            self.set_resident(block, true);
        }
        self.room.admit(request, blocks);
        blocks
    }

    fn on_evicted(&mut self, evicted: &Candidate) {
        self.room.evicted();
        let mut block = evicted.last_block;
        for _ in 0..evicted.blocks {
            self.set_resident(block, false);
            block = self.blocks[block.index()].above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{admitted, asks};

    #[test]
    fn a_newcomer_must_beat_the_rarest_resident() {
        let paths = asks(&["a", "a", "b", "c", "c", "d"]);
        assert_eq!(admitted("lmcache", 2, &paths), [1, 1, 1, 0, 1, 0]);
    }

    #[test]
    fn the_rarest_resident_need_not_be_the_victim() {
        // LRU would evict "a" with two uses; the rarest is "b" with one, so that c comes in with its second use.
        let paths = asks(&["a", "a", "b", "c", "c"]);
        assert_eq!(admitted("lmcache", 2, &paths), [1, 1, 1, 0, 1]);
        assert_eq!(admitted("tinylfu", 2, &paths), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn what_is_evicted_is_no_resident() {
        // At the fifth request c comes in for "a", whose two uses then count no more: the rarest is b with one.
        let paths = asks(&["a", "a", "b", "c", "c", "b", "d", "d", "d"]);
        assert_eq!(admitted("lmcache", 2, &paths), [1, 1, 1, 0, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn counters_are_halved() {
        let mut policy = LmCache::new(4, 6);
        policy.count_path(&[0, 1].map(BlockId));
        policy.count_path(&[0, 1].map(BlockId));
        policy.set_resident(BlockId(1), true);
        assert_eq!(
            (policy.count(BlockId(0)), policy.rarest_resident()),
            (2, Some(2))
        );
        policy.count_path(&[0, 2].map(BlockId));
        assert_eq!(
            (policy.count(BlockId(0)), policy.rarest_resident()),
            (1, Some(1))
        );
        assert_eq!(policy.count(BlockId(2)), 0);
    }
}
