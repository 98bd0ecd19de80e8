//! The linear program over prefixes: what hits save, and which slots they take.
//!
//! A hit is a prefix of the path, so what a request saves is a function of one number, the depth `D` of its hit, whatever the
//! cost model. The function is cut into *pieces* from the root down, each of which is best kept whole or not at all. The
//! variable of a piece is the share of it that is kept, from 0 to 1, never more than that of the piece above.
//!
//! Keeping a piece takes room in some gaps. There is one *row* per gap and kind of room:
//!
//! - *Slots*: the blocks held over a gap are at most the capacity `C`.
//! - *Shares*, for `k` = 2, 3 …: if a request holds `x` blocks over a gap, it takes `⌈kx/C⌉ − 1` of `k − 1` shares. Every number
//!   `z > 0` is greater than `⌈z⌉ − 1`, so requests that hold `x₁ + x₂ + … ≤ C` blocks take fewer than `k` shares, hence at most
//!   `k − 1`. With `k = 2`: at most one request holds more than half of the cache. Fractions of pieces, which slots alone
//!   allow, are dear where deep blocks save more than shallow ones; these rows forbid some of them.

use std::ops::Range;

use crate::intervals::{Interval, Intervals, Time};
use crate::prices::{Charge, Prices};

/// A stretch of path blocks that, at any price, is best kept whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The request of the earlier touch.
    pub(crate) from: Time,
    /// Blocks of the stretch.
    pub(crate) blocks: u32,
    /// What it saves more when all blocks above it hit too, in the unit of the measure.
    pub(crate) gain: f64,
    /// Where its charges end; they begin where those of the piece before it end.
    charges_end: usize,
}

/// The pieces of a trace at one capacity.
#[derive(Clone, Debug)]
pub(crate) struct PrefixProgram {
    pieces: Vec<Piece>,
    charges: Vec<Charge>,
    /// Where the pieces of a request begin; one more entry than requests.
    starts: Vec<usize>,
    /// By kind of row, the room of each of its rows: slots first, then shares.
    room: Vec<f64>,
    ceiling: f64,
    /// Whether some request could hit more than fits into the cache.
    is_cut: bool,
    /// By how much the pieces may understate what hits save.
    understated: f64,
    trend: GainTrend,
}

/// How the gains of blocks change along the intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GainTrend {
    /// Not at all: every block of an interval gains the same.
    Equal,
    /// They never fall with depth.
    Rising,
    /// Anyhow.
    Any,
}

/// What a hit needs besides its blocks: a saved state at its end, whose weight depends on the depth and never falls with it.
#[derive(Clone, Copy)]
pub(crate) struct StateWeight<'a> {
    /// Slots of the state at a depth.
    pub(crate) slots: &'a dyn Fn(u32) -> f64,
    /// Depths at which intervals are divided, so that a piece, whose state counts as at its first block, is not far too
    /// light.
    pub(crate) cuts: &'a [u32],
}

/// How close a program comes to what a cache can do. Each is a bound, and lower than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relaxation {
    /// Hits are prefixes, and blocks take slots.
    Slots,
    /// Besides, a hit fits into the cache.
    Fitting,
    /// Besides, requests take shares. Worth its time only where deep blocks save more than shallow ones: otherwise slots leave
    /// no fractions that shares could forbid.
    Shares,
}

/// Shares into which the capacity is divided, by kind of row.
const DIVISORS: [u32; 6] = [2, 3, 4, 5, 6, 8];

impl PrefixProgram {
    /// The program where request `i` saves `saved(i, hit_blocks)` when its first `hit_blocks` blocks hit.
    ///
    /// A hit of `D` blocks holds `D` slots at once, and the state at its end, so where hits have to fit, pieces end at the depth
    /// that does.
    pub(crate) fn new(
        intervals: &Intervals,
        saved: impl Fn(Time, u32) -> f64,
        capacity_slots: f64,
        state: Option<StateWeight<'_>>,
        relaxation: Relaxation,
    ) -> Self {
        let requests = intervals.requests();
        let mut builder = Builder {
            deepest: match relaxation {
                Relaxation::Slots => u32::MAX,
                _ => deepest_hit(intervals, capacity_slots, state),
            },
            thresholds: match relaxation {
                Relaxation::Shares => thresholds(intervals, capacity_slots),
                _ => Vec::new(),
            },
            state,
            requests,
            program: Self {
                pieces: Vec::with_capacity(intervals.all().len()),
                charges: Vec::with_capacity(intervals.all().len()),
                starts: vec![0],
                room: vec![capacity_slots],
                ceiling: 0.0,
                is_cut: false,
                understated: 0.0,
                trend: GainTrend::Equal,
            },
        };
        let mut kinds: Vec<_> = builder.thresholds.iter().map(|t| t.divisor).collect();
        kinds.dedup();
        let room = kinds.iter().map(|divisor| f64::from(divisor - 1));
        builder.program.room.extend(room);
        for time in 0..requests {
            builder.request(intervals.ending_at(time), time, &saved);
        }
        builder.program
    }

    /// What all requests save if each may keep what fits by itself: a bound without any prices.
    pub(crate) fn ceiling(&self) -> f64 {
        self.ceiling * self.rounding()
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn trend(&self) -> GainTrend {
        self.trend
    }

    /// A factor that covers the rounding of a sum over all requests and pieces.
    pub(crate) fn rounding(&self) -> f64 {
        1.0 + f64::EPSILON * (self.charges.len() + self.starts.len()) as f64
    }

    pub(crate) fn understated(&self) -> f64 {
        self.understated
    }

    /// Requests of the trace.
    pub(crate) fn requests(&self) -> usize {
        self.starts.len() - 1
    }

    /// Rows of one kind: one per request, for the gap after it. Nothing is held over the last.
    pub(crate) fn rows_per_kind(&self) -> usize {
        self.requests()
    }

    /// By kind of row, the room of each of its rows.
    pub(crate) fn room(&self) -> &[f64] {
        &self.room
    }

    /// Whether every request may keep all that it can hit.
    pub(crate) fn all_fits(&self) -> bool {
        let mut change = vec![0.0; self.requests() + 1];
        let slots = |charge: &&Charge| (charge.end_row as usize) < self.rows_per_kind();
        for charge in self.charges.iter().filter(slots) {
            change[charge.first_row as usize] += charge.weight;
            change[charge.end_row as usize] -= charge.weight;
        }
        let mut load = 0.0;
        change.into_iter().all(|change| {
            load += change;
            load <= self.room[0]
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.room.len() * self.rows_per_kind()
    }

    pub(crate) fn room_of_row(&self, row: usize) -> f64 {
        self.room[row / self.rows_per_kind()]
    }

    /// The largest gain less rent over all prefixes of a request's pieces, and the pieces of that prefix.
    pub(crate) fn best_prefix(&self, request: usize, prices: &Prices) -> (f64, Range<usize>) {
        let pieces = self.of(request);
        let mut best = (0.0, pieces.start);
        let mut surplus = 0.0;
        for piece in pieces.clone() {
            surplus += self.pieces[piece].gain - prices.rent(self.charges(piece));
            if surplus > best.0 {
                best = (surplus, piece + 1);
            }
        }
        (best.0, pieces.start..best.1)
    }

    /// Adds what a share of a piece takes, as changes of the load from row to row.
    pub(crate) fn add_load(&self, change: &mut [f64], piece: usize, share: f64) {
        if share == 0.0 {
            return;
        }
        for charge in self.charges(piece) {
            change[charge.first_row as usize] += share * charge.weight;
            change[charge.end_row as usize] -= share * charge.weight;
        }
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The pieces of a request, from the root down.
    pub(crate) fn of(&self, request: usize) -> Range<usize> {
        self.starts[request]..self.starts[request + 1]
    }

    /// The charges of a piece.
    pub(crate) fn charges(&self, piece: usize) -> &[Charge] {
        let start = match piece {
            0 => 0,
            _ => self.pieces[piece - 1].charges_end,
        };
        &self.charges[start..self.pieces[piece].charges_end]
    }
}

/// The depth below which no hit fits into the cache.
fn deepest_hit(intervals: &Intervals, capacity_slots: f64, state: Option<StateWeight<'_>>) -> u32 {
    let depth = |interval: &Interval| interval.first_block + interval.gainful;
    let longest = intervals.all().iter().map(depth).max().unwrap_or(0);
    let slots = |depth| f64::from(depth) + state.map_or(0.0, |state| (state.slots)(depth));
    let fits = |depth: &u32| slots(*depth) <= capacity_slots;
    (1..=longest).take_while(fits).last().unwrap_or(0)
}

/// Where a request takes one share more: when it holds more than so many blocks.
#[derive(Clone, Copy)]
struct Threshold {
    divisor: u32,
    kind: u32,
    blocks: u32,
}

/// The thresholds that a request of the trace can pass, sorted by kind.
fn thresholds(intervals: &Intervals, capacity_slots: f64) -> Vec<Threshold> {
    let depth = |interval: &Interval| interval.first_block + interval.gainful;
    let longest = intervals.all().iter().map(depth).max().unwrap_or(0);
    let mut found = Vec::new();
    let mut kind = 1;
    for divisor in DIVISORS {
        let share = |count: u32| (capacity_slots * f64::from(count) / f64::from(divisor)).floor();
        let passable = |blocks: &f64| *blocks >= 1.0 && *blocks < f64::from(longest);
        let blocks: Vec<_> = (1..divisor).map(share).filter(passable).collect();
        found.extend(blocks.iter().map(|blocks| Threshold {
            divisor,
            kind,
            blocks: *blocks as u32,
        }));
        kind += u32::from(!blocks.is_empty());
    }
    found
}

struct Builder<'a> {
    deepest: u32,
    thresholds: Vec<Threshold>,
    state: Option<StateWeight<'a>>,
    requests: Time,
    program: PrefixProgram,
}

/// A share taken by all hits that reach below `depth`.
struct Step {
    depth: u32,
    charge: Charge,
}

impl Builder<'_> {
    fn request(&mut self, intervals: &[Interval], time: Time, saved: &impl Fn(Time, u32) -> f64) {
        let steps = self.steps(intervals, time);
        let mut cuts: Vec<u32> = steps.iter().map(|step| step.depth).collect();
        cuts.extend(self.state.iter().flat_map(|state| state.cuts));
        cuts.sort_unstable();
        cuts.dedup();
        let mut curve = Vec::new();
        let mut most: f64 = 0.0;
        let mut state_above = None;
        for interval in intervals.iter().filter(|interval| interval.gainful > 0) {
            let end = self.deepest.min(interval.first_block + interval.gainful);
            self.program.is_cut |= end < interval.first_block + interval.gainful;
            let mut first = interval.first_block;
            let within = cuts.iter().copied().filter(|cut| *cut < end);
            let ends = within.chain([end]);
            for last in ends.filter(|last| *last > interval.first_block) {
                curve.clear();
                curve.extend((first..=last).map(|depth| saved(time, depth)));
                most = curve.iter().copied().fold(most, f64::max);
                let part = Part {
                    from: interval.from,
                    to: time,
                    first,
                };
                self.add(&part, &curve, &steps, &mut state_above);
                first = last;
            }
        }
        self.program.ceiling += most;
        self.program.starts.push(self.program.pieces.len());
    }

    /// The shares that a request takes, by depth. Over the gaps between the earlier touch of an interval and that of the
    /// interval above it, the request holds what its hit has from that interval on.
    fn steps(&self, intervals: &[Interval], time: Time) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut to = time;
        for interval in intervals.iter().filter(|interval| interval.gainful > 0) {
            for threshold in &self.thresholds {
                let depth = interval.first_block + threshold.blocks;
                if depth < self.deepest {
                    let row = |time| threshold.kind * self.requests + time;
                    let charge = Charge {
                        first_row: row(interval.from),
                        end_row: row(to),
                        weight: 1.0,
                    };
                    steps.push(Step { depth, charge });
                }
            }
            to = interval.from;
        }
        steps
    }

    /// Divides an interval, or a part of one, at the corners of the least concave function above its `curve` of savings.
    fn add(
        &mut self,
        part: &Part,
        curve: &[f64],
        steps: &[Step],
        state_above: &mut Option<Charge>,
    ) {
        let corners = upper_hull(curve);
        for ends in corners.windows(2) {
            let blocks = u32::try_from(ends[1] - ends[0]).expect("a path's length fits u32");
            let first = part.first + ends[0] as u32;
            let mut charge = Charge {
                first_row: part.from,
                end_row: part.to,
                weight: f64::from(blocks),
            };
            if let Some(state) = self.state {
                // A deeper hit has no state where a shallower one would end.
                let saved = Charge {
                    weight: (state.slots)(first + 1),
                    ..charge
                };
                charge.weight += saved.weight;
                let above = state_above.replace(saved);
                self.program.charges.extend(above.map(|above| Charge {
                    weight: -above.weight,
                    ..above
                }));
            }
            self.program.charges.push(charge);
            let here = steps.iter().filter(|step| step.depth == first);
            self.program.charges.extend(here.map(|step| step.charge));
            self.program.pieces.push(Piece {
                from: part.from,
                blocks,
                gain: curve[ends[1]] - curve[ends[0]],
                charges_end: self.program.charges.len(),
            });
        }
        self.program.understated += most_above(curve, &corners);
        self.program.trend = self.program.trend.max(trend(curve));
    }
}

/// Blocks of one interval.
struct Part {
    from: Time,
    to: Time,
    first: u32,
}

/// Rounding of a sum of savings, relative to the sum.
const ROUNDING: f64 = 1e-12;

/// Corners of a hull may be left out if it is missed by no more than this share of what the curve rises.
const COARSENESS: f64 = 1e-6;

/// The corners of the least concave function above a curve, without those that hardly stand out.
fn upper_hull(curve: &[f64]) -> Vec<usize> {
    let mut corners: Vec<usize> = Vec::new();
    let tolerance = ROUNDING * curve.last().map_or(0.0, |last| last.abs());
    for (at, value) in curve.iter().enumerate() {
        while let [.., before, last] = corners[..] {
            let share = (last - before) as f64 / (at - before) as f64;
            let chord = curve[before] + share * (value - curve[before]);
            if curve[last] > chord + tolerance {
                break;
            }
            corners.pop();
        }
        corners.push(at);
    }
    coarser(curve, &corners)
}

/// Leaves out corners as long as the chords across them stay close to all of them.
fn coarser(curve: &[f64], corners: &[usize]) -> Vec<usize> {
    let [first, .., last] = *corners else {
        return corners.to_vec();
    };
    let tolerance = COARSENESS * (curve[last] - curve[first]).abs();
    let mut kept = vec![first];
    let mut start = first;
    let mut least_slope = f64::NEG_INFINITY;
    let slope =
        |from: usize, to: usize, above: f64| (curve[to] - above - curve[from]) / (to - from) as f64;
    for two in corners[1..].windows(2) {
        least_slope = least_slope.max(slope(start, two[0], tolerance));
        // Slopes of a concave curve fall, so the chord misses a corner from here on.
        if slope(start, two[1], 0.0) < least_slope {
            start = two[0];
            kept.push(start);
            least_slope = f64::NEG_INFINITY;
        }
    }
    kept.push(last);
    kept
}

fn trend(curve: &[f64]) -> GainTrend {
    let tolerance = ROUNDING * curve.last().map_or(0.0, |last| last.abs());
    let mut trend = GainTrend::Equal;
    for three in curve.windows(3) {
        let change = (three[2] - three[1]) - (three[1] - three[0]);
        trend = trend.max(match change {
            _ if change.abs() <= tolerance => GainTrend::Equal,
            _ if change > 0.0 => GainTrend::Rising,
            _ => GainTrend::Any,
        });
    }
    trend
}

/// How far a curve rises above the straight lines between its corners.
fn most_above(curve: &[f64], corners: &[usize]) -> f64 {
    let mut most: f64 = 0.0;
    for ends in corners.windows(2) {
        let slope = (curve[ends[1]] - curve[ends[0]]) / (ends[1] - ends[0]) as f64;
        for (steps, value) in curve[ends[0]..ends[1]].iter().enumerate() {
            most = most.max(value - (curve[ends[0]] + slope * steps as f64));
        }
    }
    most
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn equal_or_rising_gains_stay_whole() {
        let linear: Vec<_> = (0..1000).map(|blocks| f64::from(blocks) * 0.1).collect();
        let rising: Vec<_> = (0..1000).map(|blocks| f64::from(blocks).powi(2)).collect();
        assert_eq!(upper_hull(&linear), [0, 999]);
        assert_eq!(upper_hull(&rising), [0, 999]);
        assert!(most_above(&linear, &[0, 999]) < 1e-9);
    }

    #[test]
    fn falling_gains_are_cut_where_they_fall() {
        assert_eq!(upper_hull(&[0.0, 5.0, 6.0, 8.0, 8.5]), [0, 1, 3, 4]);
        assert_eq!(upper_hull(&[1.0]), [0]);
    }

    #[test]
    fn corners_that_hardly_stand_out_are_left_out() {
        let falling: Vec<_> = (0..2000).map(|blocks| f64::from(blocks).sqrt()).collect();
        let corners = upper_hull(&falling);
        assert!(corners.len() < 1000, "{}", corners.len());
        assert!(most_above(&falling, &corners) <= COARSENESS * falling[1999]);
    }

    #[test]
    fn trends_are_told_apart() {
        assert_eq!(trend(&[0.0, 0.1, 0.2, 0.1 + 0.2]), GainTrend::Equal);
        assert_eq!(trend(&[0.0, 1.0, 4.0, 9.0]), GainTrend::Rising);
        assert_eq!(trend(&[0.0, 1.0, 4.0, 5.0]), GainTrend::Any);
    }
}
