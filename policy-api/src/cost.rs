//! What prefill costs, what a saved state weighs, and floats as keys.

use core::cmp::Ordering;

/// Time and arithmetic of a piece of prefill.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Seconds.
    pub seconds: f64,
    /// Floating-point operations.
    pub flops: f64,
}

/// What prefill costs: the cost model in force, as the cache and the policies need it.
pub trait PrefillCost {
    /// The work of prefilling a prompt of `total_tokens` of which the first `cached_tokens` are cached.
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work;

    /// What losing the tokens from `start_tokens` to `end_tokens` of a cached prefix adds to a prompt that goes on: the price of a
    /// leaf. What a pass costs whatever its length is in no leaf's price, because the prompt's own pass pays it in any case.
    fn marginal(&self, end_tokens: u64, start_tokens: u64) -> Work {
        self.prefill(end_tokens, start_tokens)
    }
}

/// Bytes of one saved state, by the depth at which it is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateBytes {
    /// What state-space layers carry on, the same at any depth.
    pub fixed: u64,
    /// Per token of the window: the KV of layers that look back through one.
    pub per_token: u64,
    /// How many last tokens that are at most.
    pub window_tokens: u64,
}

impl StateBytes {
    /// Bytes of the state that `tokens` lead to.
    pub fn at(&self, tokens: u64) -> u64 {
        self.fixed + self.per_token * tokens.min(self.window_tokens)
    }
}

/// A float with a total order (IEEE 754 `totalOrder`), for keys.
#[derive(Clone, Copy, Debug)]
pub struct Score(pub f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
