//! Flat Belady: the most hits that any cache of a capacity can have when blocks need no parents.

use std::collections::BTreeMap;

use crate::intervals::{Interval, Intervals, Time};

/// A certified upper bound on the hit blocks of every policy at one capacity.
///
/// A hit occupies one slot in every gap between the two touches of its interval, so hits are a packing of gainful
/// intervals with at most `capacity_blocks` over any gap. Dropping the interval that ends last whenever a gap is overfull
/// gives the largest packing; that a block needs its prefix is ignored, which can only add hits.
pub(crate) fn flat_belady_blocks(intervals: &Intervals, capacity_blocks: u64) -> u64 {
    let mut starting = Starting::new(intervals);
    let mut kept = Kept::default();
    let mut hit_blocks = 0;
    for time in 0..intervals.requests() {
        hit_blocks += kept.finish(time);
        for interval in starting.take(time) {
            kept.add(interval.to, u64::from(interval.gainful));
        }
        kept.drop_latest(capacity_blocks);
    }
    hit_blocks
}

/// Hands out the gainful intervals by their earlier touch.
pub(crate) struct Starting {
    sorted: Vec<Interval>,
    next: usize,
}

impl Starting {
    pub(crate) fn new(intervals: &Intervals) -> Self {
        let mut sorted = intervals.all().to_vec();
        sorted.retain(|interval| interval.gainful > 0);
        sorted.sort_by_key(|interval| interval.from);
        Self { sorted, next: 0 }
    }

    /// The intervals that start at `time`; times must be asked for in order, none left out.
    pub(crate) fn take(&mut self, time: Time) -> &[Interval] {
        let rest = &self.sorted[self.next..];
        let taken = rest
            .iter()
            .take_while(|interval| interval.from == time)
            .count();
        self.next += taken;
        &rest[..taken]
    }
}

/// The intervals kept over the current gap. Those that end together are interchangeable, so only their number counts.
#[derive(Default)]
struct Kept {
    by_end: BTreeMap<Time, u64>,
    blocks: u64,
}

impl Kept {
    fn add(&mut self, end: Time, blocks: u64) {
        *self.by_end.entry(end).or_default() += blocks;
        self.blocks += blocks;
    }

    /// Takes out what is hit now, and counts it.
    fn finish(&mut self, time: Time) -> u64 {
        let blocks = self.by_end.remove(&time).unwrap_or(0);
        self.blocks -= blocks;
        blocks
    }

    fn drop_latest(&mut self, capacity_blocks: u64) {
        while self.blocks > capacity_blocks {
            let Some(mut last) = self.by_end.last_entry() else {
                return;
            };
            let dropped = (self.blocks - capacity_blocks).min(*last.get());
            self.blocks -= dropped;
            *last.get_mut() -= dropped;
            if *last.get() == 0 {
                last.remove();
            }
        }
    }
}
