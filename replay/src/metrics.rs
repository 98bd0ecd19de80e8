//! Sums over the measured requests of one run.

use cache::{Counters, Outcome};
use policy_api::Work;

use crate::baseline::{add, recovered};
use crate::record::Ttft;

#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) counters: Counters,
    pub(crate) recovered: Work,
    ttft_seconds: Vec<f64>,
}

impl Sums {
    /// Nothing measured yet. A model that saves states counts them from 0, another has none to count.
    pub(crate) fn new(saves_states: bool) -> Self {
        Self {
            counters: Counters {
                saved_states: saves_states.then_some(0),
                evicted_states: saves_states.then_some(0),
                ..Counters::default()
            },
            recovered: Work::default(),
            ttft_seconds: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, outcome: &Outcome, cold: Work) {
        self.counters += outcome.counters;
        add(&mut self.recovered, recovered(cold, outcome.prefill));
        self.ttft_seconds.push(outcome.prefill.seconds);
    }

    pub(crate) fn requests(&self) -> usize {
        self.ttft_seconds.len()
    }

    pub(crate) fn ttft(&mut self) -> Ttft {
        let seconds = &mut self.ttft_seconds;
        if seconds.is_empty() {
            return Ttft::default();
        }
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        seconds.sort_unstable_by(f64::total_cmp);
        let quantile = |share: f64| Some(seconds[nearest_rank(seconds.len(), share)]);
        Ttft {
            mean: Some(mean),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
        }
    }
}

/// Index of the nearest-rank quantile in `count` sorted values.
fn nearest_rank(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).clamp(1, count) - 1
}

/// A ratio; null where the denominator is 0.
pub(crate) fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole != 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        assert_eq!(nearest_rank(1, 0.5), 0);
        assert_eq!(nearest_rank(10, 0.5), 4);
        assert_eq!(nearest_rank(10, 0.9), 8);
        assert_eq!(nearest_rank(10, 0.99), 9);
    }

    #[test]
    fn nothing_measured_gives_nulls() {
        assert_eq!(Sums::new(false).ttft(), Ttft::default());
        assert_eq!(ratio(1.0, 0.0), None);
    }
}
