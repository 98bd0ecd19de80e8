//! Distributions in little memory.

use std::collections::{BTreeMap, BTreeSet};

/// Bins of a factor of two.
const FINE: f64 = 16.0;

/// Values counted in bins that grow geometrically, so that quantiles are right within 4.5%, and exact where
/// all values of a bin are one. Zero has a bin of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sketch {
    zeros: u64,
    /// By the logarithm of where they begin.
    bins: BTreeMap<i32, Bin>,
    total: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    count: u64,
    sum: f64,
}

impl Sketch {
    pub(crate) fn add(&mut self, value: f64) {
        self.add_many(value, 1);
    }

    pub(crate) fn add_many(&mut self, value: f64, times: u64) {
        self.total += times;
        if value <= 0.0 {
            self.zeros += times;
            return;
        }
        let bin = self
            .bins
            .entry((value.log2() * FINE).floor() as i32)
            .or_default();
        bin.count += times;
        bin.sum += value * times as f64;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The value that a share of all is at most.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = self.zeros;
        if seen >= rank {
            return 0.0;
        }
        for bin in self.bins.values() {
            seen += bin.count;
            if seen >= rank {
                return bin.sum / bin.count as f64;
            }
        }
        0.0
    }

    /// The greatest difference of the two cumulative distributions (Kolmogorov and Smirnov).
    pub(crate) fn kolmogorov(&self, other: &Self) -> f64 {
        let share = |seen: u64, of: &Self| seen as f64 / of.total.max(1) as f64;
        let mut seen = [self.zeros, other.zeros];
        let mut widest = (share(seen[0], self) - share(seen[1], other)).abs();
        let bins: BTreeSet<_> = self.bins.keys().chain(other.bins.keys()).collect();
        let count = |of: &Self, bin: &i32| of.bins.get(bin).map_or(0, |bin| bin.count);
        for bin in bins {
            seen[0] += count(self, bin);
            seen[1] += count(other, bin);
            widest = widest.max((share(seen[0], self) - share(seen[1], other)).abs());
        }
        widest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_distance_are_those_of_the_values() {
        let (mut one, mut other) = (Sketch::default(), Sketch::default());
        for value in 0..1_000 {
            one.add(f64::from(value));
            other.add(f64::from(value + 500));
        }
        assert_eq!(one.quantile(0.0005), 0.0);
        for share in [0.1, 0.5, 0.9] {
            let found = one.quantile(share);
            assert!((found / (1_000.0 * share) - 1.0).abs() < 0.045, "{found}");
        }
        assert!((one.kolmogorov(&other) - 0.5).abs() < 0.03);
        assert!(one.kolmogorov(&one.clone()) < 1e-12);
        assert_eq!(Sketch::default().quantile(0.5), 0.0);
    }
}
