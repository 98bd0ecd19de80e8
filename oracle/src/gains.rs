//! What hits are worth when blocks are not worth the same, and which stretches of a path are worth keeping together.

use crate::intervals::{Interval, Intervals, Time};

/// A stretch of path blocks that, at any price, is worth keeping whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    /// The request of the earlier touch.
    pub(crate) from: Time,
    /// Blocks of the stretch.
    pub(crate) blocks: u32,
    /// What it adds when all blocks above it are hit too, in the unit of the measure.
    pub(crate) gain: f64,
    /// Slots that a saved state takes, where hits need one and end with this piece; else 0.
    pub(crate) state_slots: f64,
}

/// What each request saves by its hits, as pieces from the root down.
///
/// A hit is always a prefix of the path. So whatever a cost model says, the savings of a request are a function of one
/// number, and its differences are the gains of the blocks: nothing has to be assumed about the model for a bound to hold.
/// All blocks of an interval are held for the same time, so only the corners of the least concave function above the
/// savings can be the best place to stop; they divide the interval into pieces. Where blocks gain the same, or more with
/// depth, that is one piece an interval.
#[derive(Clone, Debug)]
pub(crate) struct Gains {
    pieces: Vec<Piece>,
    /// Where the pieces of a request begin; one more entry than requests.
    starts: Vec<usize>,
    ceiling: f64,
    /// By how much the pieces may understate savings, for rounding.
    slack: f64,
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

impl Gains {
    /// The gains where request `i` saves `saved(i, hit_blocks)` when its first `hit_blocks` blocks hit.
    pub(crate) fn new(intervals: &Intervals, saved: impl Fn(Time, u32) -> f64) -> Self {
        Self::with_states(intervals, saved, |_| 0.0, &[])
    }

    /// The gains where a hit of some blocks needs a saved state of so many slots there. States weigh no less with depth.
    ///
    /// The state is held as long as the last block that is hit, since the request that touched that block last could have
    /// saved it. A piece counts the state at its first block, so that no place to stop within it has a lighter one; where states
    /// grow with depth, intervals are divided at the depths `cuts`, so that this is not far too light.
    pub(crate) fn with_states(
        intervals: &Intervals,
        saved: impl Fn(Time, u32) -> f64,
        state_slots: impl Fn(u32) -> f64,
        cuts: &[u32],
    ) -> Self {
        let mut gains = Self {
            pieces: Vec::with_capacity(intervals.all().len()),
            starts: vec![0],
            ceiling: 0.0,
            slack: 0.0,
            trend: GainTrend::Equal,
        };
        let mut curve = Vec::new();
        for time in 0..intervals.requests() {
            let mut most: f64 = 0.0;
            let gainful = |interval: &&Interval| interval.gainful > 0;
            for interval in intervals.ending_at(time).iter().filter(gainful) {
                let end = interval.first_block + interval.gainful;
                let within = |cut: &&u32| (interval.first_block + 1..end).contains(*cut);
                let mut first = interval.first_block;
                for last in cuts.iter().filter(within).copied().chain([end]) {
                    curve.clear();
                    curve.extend((first..=last).map(|depth| saved(time, depth)));
                    most = curve.iter().copied().fold(most, f64::max);
                    gains.add(interval.from, first, &curve, &state_slots);
                    first = last;
                }
            }
            gains.ceiling += most;
            gains.starts.push(gains.pieces.len());
        }
        gains
    }

    /// What an unlimited cache saves.
    #[cfg(test)]
    pub(crate) fn ceiling(&self) -> f64 {
        self.ceiling
    }

    pub(crate) fn trend(&self) -> GainTrend {
        self.trend
    }

    /// A factor that covers the rounding of a sum over all requests and pieces.
    pub(crate) fn rounding(&self) -> f64 {
        1.0 + f64::EPSILON * (self.pieces.len() + self.starts.len()) as f64
    }

    pub(crate) fn slack(&self) -> f64 {
        self.slack
    }

    /// Requests of the trace.
    pub(crate) fn requests(&self) -> usize {
        self.starts.len() - 1
    }

    /// The pieces of a request, from the root down.
    pub(crate) fn of(&self, request: usize) -> &[Piece] {
        &self.pieces[self.starts[request]..self.starts[request + 1]]
    }

    /// Divides an interval, or a part of one, at the corners of the least concave function above its `curve` of savings.
    fn add(
        &mut self,
        from: Time,
        first_block: u32,
        curve: &[f64],
        state_slots: impl Fn(u32) -> f64,
    ) {
        let corners = upper_hull(curve);
        for ends in corners.windows(2) {
            self.pieces.push(Piece {
                from,
                blocks: u32::try_from(ends[1] - ends[0]).expect("a path's length fits u32"),
                gain: curve[ends[1]] - curve[ends[0]],
                state_slots: state_slots(first_block + ends[0] as u32 + 1),
            });
        }
        self.slack += most_above(curve, &corners);
        self.trend = self.trend.max(trend(curve));
    }
}

/// Rounding of a sum of savings, relative to the sum.
const ROUNDING: f64 = 1e-12;

/// The corners of the least concave function above a curve. Corners that stand out by rounding only are left out.
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
    corners
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
mod tests {
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
    fn shapes_are_told_apart() {
        assert_eq!(trend(&[0.0, 0.1, 0.2, 0.1 + 0.2]), GainTrend::Equal);
        assert_eq!(trend(&[0.0, 1.0, 4.0, 9.0]), GainTrend::Rising);
        assert_eq!(trend(&[0.0, 1.0, 4.0, 5.0]), GainTrend::Any);
    }
}
