//! How often blocks were asked for, approximately and with aging.

use policy_api::BlockId;

/// A count-min sketch of four rows of four-bit counters, all of a block in one cache line.
///
/// Never counts too low before the first aging. After so many additions that every block of the cache could have been
/// counted ten times, all counters are halved.
///
/// Source: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM ToS 2017; the layout is
/// that of the Caffeine library.
pub(crate) struct Sketch {
    lines: Vec<[u64; 8]>,
    additions: u64,
    period: u64,
}

const ROWS: usize = 4;
const MOST: u64 = 15;
/// Counters that a cache of any size has at least and at most, in lines of 128.
const LEAST_LINES: u64 = 8;
const MOST_LINES: u64 = 1 << 17;

impl Sketch {
    /// For a cache of so many blocks: sixteen counters a block.
    pub(crate) fn new(capacity_blocks: u64) -> Self {
        let lines = (capacity_blocks / 8 + 1)
            .clamp(LEAST_LINES, MOST_LINES)
            .next_power_of_two();
        Self {
            lines: vec![[0; 8]; lines as usize],
            additions: 0,
            period: 10 * capacity_blocks.clamp(LEAST_LINES * 8, MOST_LINES * 8),
        }
    }

    /// Counts every block of a path once.
    pub(crate) fn add(&mut self, path: &[BlockId]) {
        for &block in path {
            let (line, counters) = self.place(block);
            for (word, shift) in counters {
                let word = &mut self.lines[line][word];
                if (*word >> shift) & MOST < MOST {
                    *word += 1 << shift;
                }
            }
        }
        self.additions += path.len() as u64;
        if self.additions >= self.period {
            self.age();
        }
    }

    /// About how often the block was counted, 15 at most.
    pub(crate) fn count(&self, block: BlockId) -> u32 {
        let (line, counters) = self.place(block);
        let counts = counters.map(|(word, shift)| (self.lines[line][word] >> shift) & MOST);
        counts.into_iter().fold(MOST, u64::min) as u32
    }

    fn age(&mut self) {
        self.additions /= 2;
        for word in self.lines.iter_mut().flatten() {
            *word = (*word >> 1) & 0x7777_7777_7777_7777;
        }
    }

    /// The line of a block, and the word and shift of its counter in each row.
    fn place(&self, block: BlockId) -> (usize, [(usize, u32); ROWS]) {
        let hash = mix(u64::from(block.0));
        let line = (hash as usize) & (self.lines.len() - 1);
        let counter = |row: usize| {
            let bits = (hash >> (32 + 8 * row)) as usize;
            (2 * row + (bits & 1), ((bits >> 1) & 15) as u32 * 4)
        };
        (line, [counter(0), counter(1), counter(2), counter(3)])
    }
}

/// The finaliser of the splitmix64 generator.
fn mix(key: u64) -> u64 {
    let key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_never_too_low_and_mostly_right() {
        let mut sketch = Sketch::new(1000);
        for block in 0..1000 {
            for _ in 0..block % 8 {
                sketch.add(&[BlockId(block)]);
            }
        }
        assert!((0..1000).all(|block| sketch.count(BlockId(block)) >= block % 8));
        let right = (0..1000).filter(|block| sketch.count(BlockId(*block)) == block % 8);
        assert!(right.count() > 950);
    }

    #[test]
    fn all_counts_are_halved_after_ten_additions_a_block() {
        let mut sketch = Sketch::new(64);
        for _ in 0..12 {
            sketch.add(&[BlockId(7)]);
        }
        assert_eq!(sketch.count(BlockId(7)), 12);
        let others: Vec<_> = (1000..1000 + 628).map(BlockId).collect();
        sketch.add(&others);
        assert_eq!(sketch.count(BlockId(7)), 6);
    }

    #[test]
    fn any_capacity_will_do() {
        for capacity in [0, 1, u64::MAX] {
            let mut sketch = Sketch::new(capacity);
            sketch.add(&[1, 2, 3].map(BlockId));
            assert_eq!(sketch.count(BlockId(2)), 1);
        }
    }
}
