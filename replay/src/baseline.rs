//! What does not depend on the policy: the cold cost of every request, and the infinite-cache bound.

use policy_api::{PrefillCost, Work};
use trace::{Request, Workload};

/// Leading requests that fill the cache and are not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Warmup {
    /// This many requests.
    Requests(usize),
    /// This share of the requests, rounded down, from 0 to 1.
    Fraction(f64),
}

/// Not a warm-up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no warm-up: write requests as 1000, or a share of them as 0.5 or 50%")]
pub struct NotAWarmup(String);

impl std::str::FromStr for Warmup {
    type Err = NotAWarmup;

    /// With a point or a percent sign a share, else a count of requests.
    fn from_str(text: &str) -> Result<Self, NotAWarmup> {
        let wrong = || NotAWarmup(text.to_owned());
        if let Ok(requests) = text.parse() {
            return Ok(Self::Requests(requests));
        }
        params::share(text).map(Self::Fraction).ok_or_else(wrong)
    }
}

impl Warmup {
    /// The number of requests of a trace that warm the cache.
    pub fn requests(self, of: usize) -> usize {
        match self {
            Self::Requests(count) => count.min(of),
            Self::Fraction(share) => ((of as f64) * share.clamp(0.0, 1.0)) as usize,
        }
    }
}

/// The policy-free half of every run over one trace under one cost model: computed once, shared by all.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// Requests that warm the cache; all sums below leave them out.
    pub warmup_requests: usize,
    /// Prefill of each request of the whole trace without a cache.
    pub cold: Vec<Work>,
    /// Sum of `cold`.
    pub cold_total: Work,
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Full blocks of the prompts.
    pub prompt_blocks: u64,
    /// Hit tokens of an infinite cache.
    pub infinite_cache_hit_tokens: u64,
    /// Prefill that an infinite cache recovers.
    pub infinite_cache_recovered: Work,
    /// Shared tokens lost below the size of a block; token traces only.
    pub rounding_lost_tokens: Option<u64>,
}

impl Baseline {
    /// Prices every request of the trace.
    pub fn new(workload: &Workload, cost: &dyn PrefillCost, warmup: Warmup) -> Self {
        let cold_of = |request: &Request| cost.prefill(u64::from(request.prompt_tokens), 0);
        let requests = workload.requests();
        let warmup_requests = warmup.requests(requests.len());
        let mut baseline = Self {
            warmup_requests,
            cold: requests.iter().map(cold_of).collect(),
            cold_total: Work::default(),
            prompt_tokens: 0,
            prompt_blocks: 0,
            infinite_cache_hit_tokens: 0,
            infinite_cache_recovered: Work::default(),
            rounding_lost_tokens: workload.rounding_lost_tokens().map(|lost| {
                lost[warmup_requests..]
                    .iter()
                    .map(|tokens| u64::from(*tokens))
                    .sum()
            }),
        };
        for (request, cold) in requests.iter().zip(&baseline.cold).skip(warmup_requests) {
            let hit_blocks = request
                .seen_blocks
                .min(request.usable_blocks(workload.block_tokens()));
            let hit_tokens = u64::from(hit_blocks) * u64::from(workload.block_tokens());
            let warm = cost.prefill(u64::from(request.prompt_tokens), hit_tokens);
            add(&mut baseline.cold_total, *cold);
            add(
                &mut baseline.infinite_cache_recovered,
                recovered(*cold, warm),
            );
            baseline.prompt_tokens += u64::from(request.prompt_tokens);
            baseline.prompt_blocks += u64::from(request.prompt_blocks);
            baseline.infinite_cache_hit_tokens += hit_tokens;
        }
        baseline
    }
}

pub(crate) fn recovered(cold: Work, warm: Work) -> Work {
    Work {
        seconds: cold.seconds - warm.seconds,
        flops: cold.flops - warm.flops,
    }
}

pub(crate) fn add(sum: &mut Work, work: Work) {
    sum.seconds += work.seconds;
    sum.flops += work.flops;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_or_percent_makes_a_fraction() {
        let parse = |text: &str| text.parse().ok();
        assert_eq!(parse("1000"), Some(Warmup::Requests(1000)));
        assert_eq!(parse("1"), Some(Warmup::Requests(1)));
        assert_eq!(parse("1.0"), Some(Warmup::Fraction(1.0)));
        assert_eq!(parse("50%"), Some(Warmup::Fraction(0.5)));
        for wrong in ["", "-1", "1.5", "101%", "half", "NaN%"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
