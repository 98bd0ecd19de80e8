//! Hits at every capacity from one pass over the trace.
//!
//! A policy whose order of victims is total, does not depend on the capacity or on what is resident, and never ranks a
//! parent below its child keeps, at every capacity, the top of one stack (Mattson et al., 1970). So the depth at which a
//! block lies when it is touched is the smallest capacity at which the touch hits. That holds for tree LRU, for LRU behind
//! `second-occurrence` admission with unbounded memory, and for gain-or-never Belady. It does not hold for FIFO, for LFU
//! with counts lost on eviction, for priced Belady, or for whole-leaf LRU that refreshes the tail of a split.

use std::collections::BTreeMap;

use trace::Workload;

use crate::flat::Starting;
use crate::intervals::{Interval, Intervals, Time};
use crate::record::CurvePoint;

/// Hits of LRU, of LRU behind `second-occurrence` admission with unbounded memory, and of Belady, at every capacity.
#[derive(Clone, Debug)]
pub struct HitCurves {
    block_tokens: u64,
    lru: Curve,
    second_occurrence_lru: Curve,
    belady: Curve,
    belady_exact: bool,
}

impl HitCurves {
    /// One pass over the trace per policy. Hits of the first `warmup_requests` do not count.
    pub fn new(workload: &Workload, warmup_requests: u32) -> Self {
        let intervals = Intervals::new(workload, warmup_requests);
        Self {
            block_tokens: u64::from(workload.block_tokens()),
            lru: Curve::lru(workload, &intervals),
            second_occurrence_lru: Curve::second_occurrence_lru(workload, warmup_requests),
            belady: Curve::flat_belady(workload, &intervals),
            belady_exact: intervals.inversions() == 0,
        }
    }

    /// The hits at one capacity, for the report on a trace of that name.
    pub fn point(&self, trace_index: usize, trace: &str, capacity_blocks: u64) -> CurvePoint {
        let tokens = |curve: &Curve| curve.hit_blocks(capacity_blocks) * self.block_tokens;
        CurvePoint {
            trace_index,
            trace: trace.to_owned(),
            capacity_blocks,
            lru_hit_tokens: tokens(&self.lru),
            second_occurrence_lru_hit_tokens: tokens(&self.second_occurrence_lru),
            belady_hit_tokens: tokens(&self.belady),
            belady_exact: self.belady_exact,
        }
    }
}

/// Hit blocks of one policy at every capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    /// Hit blocks by capacity in blocks, from 0 up to the distinct blocks of the trace.
    hit_blocks: Vec<u64>,
}

impl Curve {
    /// Hit blocks over the whole trace at a capacity; beyond the trace's distinct blocks, those of an infinite cache.
    pub(crate) fn hit_blocks(&self, capacity_blocks: u64) -> u64 {
        let last = self.hit_blocks.len() - 1;
        let index = usize::try_from(capacity_blocks).map_or(last, |capacity| capacity.min(last));
        self.hit_blocks[index]
    }

    /// The smallest capacity in blocks with the hits of an infinite cache.
    #[cfg(test)]
    pub(crate) fn saturation_blocks(&self) -> u64 {
        let most = self.hit_blocks[self.hit_blocks.len() - 1];
        self.hit_blocks.partition_point(|hits| *hits < most) as u64
    }

    /// Tree-aware LRU, admitting whole paths.
    pub(crate) fn lru(workload: &Workload, intervals: &Intervals) -> Self {
        let offered = workload.requests().iter().map(|r| r.path_blocks);
        Self::of_lru(workload, intervals, offered)
    }

    /// Tree-aware LRU behind `second-occurrence` admission with unbounded memory.
    pub(crate) fn second_occurrence_lru(workload: &Workload, warmup_requests: Time) -> Self {
        let intervals = Intervals::of_second_touches(workload, warmup_requests);
        let offered = workload.requests().iter().map(|r| r.seen_blocks);
        Self::of_lru(workload, &intervals, offered)
    }

    /// Flat Belady: a certified upper bound at every capacity, and exactly the hits of the optimal policy where no
    /// interval of the trace is inverted.
    pub(crate) fn flat_belady(workload: &Workload, intervals: &Intervals) -> Self {
        let mut starting = Starting::new(intervals);
        let mut stack = BeladyStack::default();
        let mut depths = Depths::new(workload);
        for time in 0..intervals.requests() {
            stack.touch(time, starting.take(time), &mut depths);
        }
        depths.into_curve()
    }

    /// An LRU where each request puts the first `offered` blocks of its path on top of the stack.
    fn of_lru(
        workload: &Workload,
        intervals: &Intervals,
        offered: impl Iterator<Item = u32>,
    ) -> Self {
        let mut depths = Depths::new(workload);
        walk_lru_stack(intervals, offered, |interval, above| {
            depths.add(above, u64::from(interval.gainful));
        });
        depths.into_curve()
    }
}

/// Hit blocks of each request under tree-aware LRU at one capacity, read off the stack.
pub(crate) fn lru_hits(
    workload: &Workload,
    intervals: &Intervals,
    capacity_blocks: u64,
) -> Vec<u32> {
    let offered = workload.requests().iter().map(|r| r.path_blocks);
    let mut hits = vec![0; workload.requests().len()];
    walk_lru_stack(intervals, offered, |interval, above| {
        let fit = capacity_blocks.saturating_sub(above);
        let fit = u32::try_from(fit).unwrap_or(u32::MAX);
        hits[interval.to as usize] += fit.min(interval.gainful);
    });
    hits
}

/// Tells for every interval how many blocks lie above its first one when it ends. Each request puts the first `offered`
/// blocks of its path on top, root uppermost, so the blocks of an interval lie below each other.
fn walk_lru_stack(
    intervals: &Intervals,
    offered: impl Iterator<Item = u32>,
    mut each: impl FnMut(&Interval, u64),
) {
    let mut last_touched = Fenwick::new(intervals.requests());
    for (time, offered) in (0..).zip(offered) {
        let moved = intervals.ending_at(time);
        // All depths are read before anything moves: the path's own blocks lie in each other's way.
        for interval in moved {
            each(interval, last_touched.after(interval.from));
        }
        for interval in moved {
            last_touched.subtract(interval.from, u64::from(interval.blocks));
        }
        last_touched.add(time, u64::from(offered));
    }
}

/// Counts of stack depths, as differences between neighbouring depths.
struct Depths {
    changes: Vec<i64>,
}

impl Depths {
    fn new(workload: &Workload) -> Self {
        Self {
            changes: vec![0; workload.distinct_blocks() as usize + 2],
        }
    }

    /// Counts one touch at each of the `blocks` depths below `above`.
    fn add(&mut self, above: u64, blocks: u64) {
        let at =
            |depth: u64| usize::try_from(depth).expect("a depth is at most the distinct blocks");
        self.changes[at(above + 1)] += 1;
        self.changes[at(above + blocks + 1)] -= 1;
    }

    fn into_curve(self) -> Curve {
        let mut at_depth = 0;
        let mut hits = 0;
        let mut hit_blocks = self.changes;
        hit_blocks.pop();
        for change in &mut hit_blocks {
            at_depth += *change;
            hits += at_depth;
            *change = hits;
        }
        Curve {
            hit_blocks: hit_blocks.into_iter().map(i64::unsigned_abs).collect(),
        }
    }
}

/// The stack of flat Belady: in position `p` lies the interval that a cache of `p` blocks keeps and one of `p - 1` does not.
/// A request walks its segments, of which there are as many as requests whose blocks are still to be reused, or a few times
/// more.
#[derive(Default)]
struct BeladyStack {
    segments: Vec<Segment>,
}

/// Neighbouring positions that hold intervals with one end, or nothing.
#[derive(Clone, Copy)]
struct Segment {
    end: Option<Time>,
    blocks: u64,
}

impl BeladyStack {
    /// Ends the intervals that end now, counting how deep they lie, and lets those that start sink in: each position keeps
    /// what ends first of its own interval and those that arrive, and the others sink on until one finds a place empty.
    fn touch(&mut self, time: Time, starting: &[Interval], depths: &mut Depths) {
        let mut sinking = Sinking::new(starting);
        let mut settled = Vec::with_capacity(self.segments.len() + starting.len());
        let mut above = 0;
        for mut segment in self.segments.drain(..) {
            if segment.end == Some(time) {
                depths.add(above, segment.blocks);
                segment.end = None;
            }
            above += segment.blocks;
            sinking.pass(segment, &mut settled);
        }
        sinking.rest(&mut settled);
        while settled.pop_if(|segment| segment.end.is_none()).is_some() {}
        self.segments = settled;
    }
}

/// The intervals on their way down, by their end.
struct Sinking {
    by_end: BTreeMap<Time, u64>,
}

impl Sinking {
    fn new(starting: &[Interval]) -> Self {
        let mut by_end = BTreeMap::new();
        for interval in starting {
            *by_end.entry(interval.to).or_default() += u64::from(interval.gainful);
        }
        Self { by_end }
    }

    /// Passes the positions of one segment: those that end before it take its places, one position at a time.
    fn pass(&mut self, segment: Segment, settled: &mut Vec<Segment>) {
        let mut left = segment.blocks;
        while left > 0 {
            let Some(mut first) = self.by_end.first_entry() else {
                break;
            };
            let end = *first.key();
            if segment.end.is_some_and(|kept| kept <= end) {
                break;
            }
            let blocks = left.min(*first.get());
            *first.get_mut() -= blocks;
            if *first.get() == 0 {
                first.remove();
            }
            if let Some(displaced) = segment.end {
                *self.by_end.entry(displaced).or_default() += blocks;
            }
            put(settled, Some(end), blocks);
            left -= blocks;
        }
        put(settled, segment.end, left);
    }

    /// Settles what is left on the empty positions below the stack.
    fn rest(self, settled: &mut Vec<Segment>) {
        for (end, blocks) in self.by_end {
            put(settled, Some(end), blocks);
        }
    }
}

fn put(settled: &mut Vec<Segment>, end: Option<Time>, blocks: u64) {
    match settled.last_mut() {
        _ if blocks == 0 => {}
        Some(last) if last.end == end => last.blocks += blocks,
        _ => settled.push(Segment { end, blocks }),
    }
}

/// Sums over request indices: the blocks last touched by each request.
struct Fenwick {
    sums: Vec<u64>,
    total: u64,
}

impl Fenwick {
    fn new(requests: Time) -> Self {
        Self {
            sums: vec![0; requests as usize + 1],
            total: 0,
        }
    }

    /// Blocks last touched after a request.
    fn after(&self, time: Time) -> u64 {
        let mut index = time as usize + 1;
        let mut up_to = 0;
        while index > 0 {
            up_to += self.sums[index];
            index &= index - 1;
        }
        self.total - up_to
    }

    fn add(&mut self, time: Time, blocks: u64) {
        self.total += blocks;
        self.update(time, |sum| *sum += blocks);
    }

    fn subtract(&mut self, time: Time, blocks: u64) {
        self.total -= blocks;
        self.update(time, |sum| *sum -= blocks);
    }

    fn update(&mut self, time: Time, change: impl Fn(&mut u64)) {
        let mut index = time as usize + 1;
        while let Some(sum) = self.sums.get_mut(index) {
            change(sum);
            index += index & index.wrapping_neg();
        }
    }
}
