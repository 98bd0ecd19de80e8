//! The best schedule of those that were tried.

use crate::bracket::Recovered;
use crate::priced_trace::PricedTrace;
use crate::schedule::Hits;

/// The best of the schedules tried so far.
pub(crate) struct Best {
    pub(crate) hits: Hits,
    /// What `hits` save.
    pub(crate) seconds: f64,
    /// The most hit tokens of any schedule tried.
    pub(crate) hit_tokens: u64,
}

impl Best {
    pub(crate) fn new(hits: Hits, found: Recovered) -> Self {
        Self {
            hits,
            seconds: found.prefill_seconds_recovered,
            hit_tokens: found.hit_tokens,
        }
    }

    /// Keeps the better of two schedules in seconds, and the most hit tokens of both.
    pub(crate) fn offer(&mut self, trace: &PricedTrace<'_>, hits: Hits) {
        let found = trace.recovered(&hits);
        self.hit_tokens = self.hit_tokens.max(found.hit_tokens);
        if found.prefill_seconds_recovered > self.seconds {
            self.seconds = found.prefill_seconds_recovered;
            self.hits = hits;
        }
    }
}

/// Multiples of the dual prices that are tried as rents. The exact ones are right for fractions of blocks.
pub(crate) const DUAL_RENTS: [f64; 5] = [1.0, 0.95, 1.05, 0.9, 1.1];
