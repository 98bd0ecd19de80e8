//! The next use of a block, under three readings of what a use is.

use crate::intervals::{Interval, Intervals, NEVER, Time};

/// What counts as the next use of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The next touch if it is gainful, else never: a touch without gain offers the block again for free.
    /// Optimal for tokens where no interval is inverted.
    GainOrNever,
    /// The next gainful touch, looking through touches without gain. Loses rarely; kept because with inversions it may win.
    LookThrough,
    /// As `GainOrNever`, but an inverted interval counts as never. Loses at most one hit per inversion.
    Safe,
}

/// The next use of every touch, in stretches of path blocks with equal next use.
#[derive(Clone, Debug)]
pub(crate) struct NextUse {
    /// Where the stretches of a request's path begin; one more entry than requests.
    starts: Vec<usize>,
    stretches: Vec<Stretch>,
}

/// Path blocks of one request with equal next use, from the end of the stretch above down to `end_block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    end_block: u32,
    time: Time,
}

/// The next use of one block, and how far up its path it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The request that reuses the block, or [`NEVER`].
    pub(crate) time: Time,
    /// Depth of the first block of the stretch with this next use.
    pub(crate) first_block: u32,
}

impl NextUse {
    /// Reads the next uses off the intervals.
    pub(crate) fn new(intervals: &Intervals, reading: Reading) -> Self {
        let by_start = ByStart::new(intervals);
        match reading {
            Reading::GainOrNever => by_start.table(|interval| interval.gainful),
            Reading::Safe => by_start.table(|interval| interval.safe),
            Reading::LookThrough => by_start.look_through(),
        }
    }

    /// The next use, after request `touched`, of the block at depth `block` of that request's path.
    pub(crate) fn after(&self, touched: Time, block: u32) -> Use {
        let stretches = self.of(touched);
        let index = stretches.partition_point(|stretch| stretch.end_block <= block);
        let first_block = match index {
            0 => 0,
            _ => stretches[index - 1].end_block,
        };
        let time = stretches.get(index).map_or(NEVER, |stretch| stretch.time);
        Use { time, first_block }
    }

    fn of(&self, touched: Time) -> &[Stretch] {
        &self.stretches[self.starts[touched as usize]..self.starts[touched as usize + 1]]
    }
}

/// The intervals sorted by their earlier touch, then by depth. Those of one request follow each other without a hole from
/// the root down, since what a later request touches is a prefix of the path.
struct ByStart {
    starts: Vec<usize>,
    intervals: Vec<Interval>,
}

impl ByStart {
    fn new(intervals: &Intervals) -> Self {
        let mut sorted = intervals.all().to_vec();
        // Stable: the later touch grows with depth, so the order of equal starts is already by depth.
        sorted.sort_by_key(|interval| interval.from);
        let starts = (0..=intervals.requests())
            .map(|time| sorted.partition_point(|interval| interval.from < time))
            .collect();
        Self {
            starts,
            intervals: sorted,
        }
    }

    fn starting_at(&self, time: Time) -> &[Interval] {
        &self.intervals[self.starts[time as usize]..self.starts[time as usize + 1]]
    }

    /// The table in which only the leading `used` blocks of an interval are used at its end.
    fn table(&self, used: impl Fn(&Interval) -> u32) -> NextUse {
        let mut table = NextUse {
            starts: vec![0],
            stretches: Vec::new(),
        };
        for time in 0..self.requests() {
            let mut path = Vec::new();
            for interval in self.starting_at(time) {
                let used = used(interval);
                extend(&mut path, interval.first_block + used, interval.to);
                extend(&mut path, interval.first_block + interval.blocks, NEVER);
            }
            drop_never(&mut path);
            table.stretches.append(&mut path);
            table.starts.push(table.stretches.len());
        }
        table
    }

    /// The table in which what an interval does not gain is looked up in the path of the touch that ends it. That needs
    /// the later paths first, so the paths are filled from the last to the first.
    fn look_through(&self) -> NextUse {
        let mut paths: Vec<Vec<Stretch>> = vec![Vec::new(); self.requests() as usize];
        for time in (0..self.requests()).rev() {
            let mut path = Vec::new();
            for interval in self.starting_at(time) {
                let gained_to = interval.first_block + interval.gainful;
                extend(&mut path, gained_to, interval.to);
                let end = interval.first_block + interval.blocks;
                copy_below(&mut path, &paths[interval.to as usize], gained_to, end);
            }
            drop_never(&mut path);
            paths[time as usize] = path;
        }
        let mut starts = vec![0];
        for path in &paths {
            starts.push(starts[starts.len() - 1] + path.len());
        }
        NextUse {
            starts,
            stretches: paths.concat(),
        }
    }

    fn requests(&self) -> Time {
        Time::try_from(self.starts.len() - 1).expect("request indices fit u32")
    }
}

/// Lengthens a path's stretches down to `end_block`, where that is not reached yet.
fn extend(path: &mut Vec<Stretch>, end_block: u32, time: Time) {
    let reached = path.last().map_or(0, |stretch| stretch.end_block);
    if end_block <= reached {
        return;
    }
    match path.last_mut() {
        Some(last) if last.time == time => last.end_block = end_block,
        _ => path.push(Stretch { end_block, time }),
    }
}

/// What lies below the last stretch is never used anyway.
fn drop_never(path: &mut Vec<Stretch>) {
    path.pop_if(|last| last.time == NEVER);
}

/// Copies the stretches of a later path for the blocks between two depths.
fn copy_below(path: &mut Vec<Stretch>, later: &[Stretch], from_block: u32, end_block: u32) {
    let below = later.partition_point(|stretch| stretch.end_block <= from_block);
    for stretch in &later[below..] {
        extend(path, stretch.end_block.min(end_block), stretch.time);
    }
    extend(path, end_block, NEVER);
}
