//! The trace as the oracle sees it: intervals between consecutive touches, merged along paths.

use policy_api::BlockId;
use trace::{Request, Workload};

/// Index of a request in arrival order: the oracle's clock.
pub(crate) type Time = u32;

/// No time: what was never touched before, or never will be again.
pub(crate) const NEVER: Time = Time::MAX;

/// A stretch of path blocks that share two consecutive touches.
///
/// Along a path the previous touch never gets later with depth, and the blocks of a request that were last touched by one
/// earlier request are contiguous. So a request has one interval per earlier request that it continues, not one per block.
/// Whatever holds of a block for only a part of the stretch (gainful, inverted) holds of its head or its tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The request of the earlier touch.
    pub(crate) from: Time,
    /// The request of the later touch.
    pub(crate) to: Time,
    /// Depth of the first block, counted from 0 at the root.
    pub(crate) first_block: u32,
    /// Blocks of the stretch.
    pub(crate) blocks: u32,
    /// Leading blocks whose later touch can count as a hit.
    pub(crate) gainful: u32,
    /// Leading gainful blocks whose interval is not inverted: no ancestor has a touch without gain strictly inside it.
    pub(crate) safe: u32,
}

/// All intervals of a trace, sorted by their later touch, then by depth.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    intervals: Vec<Interval>,
    /// Where the intervals that end at a request begin; one more entry than requests.
    ends: Vec<usize>,
}

/// What the forward pass remembers of a block.
#[derive(Clone, Copy)]
struct Touched {
    last: Time,
    /// One more than the request of the last touch without gain; 0 for none.
    last_gainless: Time,
}

const UNTOUCHED: Touched = Touched {
    last: NEVER,
    last_gainless: 0,
};

impl Intervals {
    /// The intervals of a trace: one pass, eight bytes per distinct block while it runs. Hits of the first
    /// `warmup_requests` do not count, so none of their touches is gainful.
    pub(crate) fn new(workload: &Workload, warmup_requests: Time) -> Self {
        Self::of_offered(workload, warmup_requests, |request| request.path_blocks)
    }

    /// The intervals between the touches of blocks that an earlier request touched already: a block's first touch does
    /// not count, which is how `second-occurrence` admission with unbounded memory sees the trace.
    pub(crate) fn of_second_touches(workload: &Workload, warmup_requests: Time) -> Self {
        Self::of_offered(workload, warmup_requests, |request| request.seen_blocks)
    }

    /// The intervals where each request offers only so many leading blocks of its path.
    fn of_offered(
        workload: &Workload,
        warmup_requests: Time,
        offered: impl Fn(&Request) -> u32,
    ) -> Self {
        let mut touched = vec![UNTOUCHED; workload.distinct_blocks() as usize];
        let mut found = Self {
            intervals: Vec::new(),
            ends: vec![0],
        };
        for (time, request) in (0..).zip(workload.requests()) {
            let path = &workload.path(request)[..offered(request) as usize];
            let usable = match time < warmup_requests {
                true => 0,
                false => workload.usable_blocks(request) as usize,
            };
            found.close(time, path, usable, &touched);
            for block in path {
                touched[block.index()].last = time;
            }
            for block in path.iter().skip(usable) {
                touched[block.index()].last_gainless = time + 1;
            }
            found.ends.push(found.intervals.len());
        }
        found
    }

    /// Adds the intervals that end at `time`.
    fn close(&mut self, time: Time, path: &[BlockId], usable: usize, touched: &[Touched]) {
        let mut open = NEVER;
        let mut gainless_above = 0;
        for (depth, block) in path.iter().enumerate() {
            let Touched {
                last,
                last_gainless,
            } = touched[block.index()];
            if last == NEVER {
                return;
            }
            if last != open {
                open = last;
                self.intervals.push(Interval {
                    from: last,
                    to: time,
                    first_block: u32::try_from(depth).expect("a path's length fits u32"),
                    blocks: 0,
                    gainful: 0,
                    safe: 0,
                });
            }
            let interval = self.intervals.last_mut().expect("one is open");
            let gainful = depth < usable;
            let inverted = gainless_above > last + 1;
            interval.blocks += 1;
            interval.gainful += u32::from(gainful);
            interval.safe += u32::from(gainful && !inverted);
            gainless_above = gainless_above.max(last_gainless);
        }
    }

    /// Requests of the trace.
    pub(crate) fn requests(&self) -> Time {
        Time::try_from(self.ends.len() - 1).expect("request indices fit u32")
    }

    /// All intervals, sorted by their later touch, then by depth.
    pub(crate) fn all(&self) -> &[Interval] {
        &self.intervals
    }

    /// The intervals that end at a request, from the root down.
    pub(crate) fn ending_at(&self, time: Time) -> &[Interval] {
        &self.intervals[self.ends[time as usize]..self.ends[time as usize + 1]]
    }

    /// How many leading blocks of a request can hit at most: they were touched before, and their touch is gainful.
    pub(crate) fn gainful_depth(&self, time: Time) -> u32 {
        let gainful = |interval: &Interval| interval.gainful;
        self.ending_at(time).iter().map(gainful).sum()
    }

    /// Gainful block intervals that are inverted: an ancestor is touched without gain strictly inside.
    pub(crate) fn inversions(&self) -> u64 {
        self.intervals
            .iter()
            .map(|interval| u64::from(interval.gainful - interval.safe))
            .sum()
    }

    /// Hit blocks of a cache of unlimited capacity: every gainful interval.
    pub(crate) fn ceiling_blocks(&self) -> u64 {
        self.intervals
            .iter()
            .map(|interval| u64::from(interval.gainful))
            .sum()
    }
}
