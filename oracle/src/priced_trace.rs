//! A trace, what its hits save, and when its blocks are reused: what all brackets of one trace share.

use std::collections::BTreeMap;

use policy_api::PrefillCost;
use trace::Workload;

use crate::bracket::Recovered;
use crate::intervals::{Intervals, Time};
use crate::next_use::{NextUse, Reading};

/// A trace prepared for brackets at any capacity.
pub(crate) struct PricedTrace<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) cost: &'a (dyn PrefillCost + Send + Sync),
    pub(crate) warmup_requests: usize,
    pub(crate) intervals: Intervals,
    /// By the reading that is optimal where no interval is inverted.
    pub(crate) next_use: NextUse,
    /// What a cache of unlimited capacity saves.
    pub(crate) ceiling: Recovered,
    /// The most seconds that any hit saves per block.
    pub(crate) most_per_block: f64,
    savings: Savings,
}

impl<'a> PricedTrace<'a> {
    pub(crate) fn new(
        workload: &'a Workload,
        cost: &'a (dyn PrefillCost + Send + Sync),
        warmup_requests: Time,
    ) -> Self {
        let intervals = Intervals::new(workload, warmup_requests);
        let savings = Savings::new(workload, cost, &intervals);
        let ceiling_blocks = intervals.ceiling_blocks();
        Self {
            ceiling: Recovered {
                hit_tokens: ceiling_blocks * u64::from(workload.block_tokens()),
                prefill_seconds_recovered: savings.ceiling(&intervals),
            },
            most_per_block: savings.most_per_block(&intervals),
            savings,
            next_use: NextUse::new(&intervals, Reading::GainOrNever),
            workload,
            cost,
            warmup_requests: warmup_requests as usize,
            intervals,
        }
    }

    /// Seconds that a measured request saves when its first blocks hit.
    pub(crate) fn saved(&self, time: Time, hit_blocks: u32) -> f64 {
        self.savings.of(time, hit_blocks)
    }

    /// What hits save in all, by request.
    pub(crate) fn recovered(&self, hits: &[u32]) -> Recovered {
        let measured = (0..).zip(hits).skip(self.warmup_requests);
        let blocks = measured.clone().map(|(_, hit)| u64::from(*hit)).sum();
        Recovered {
            hit_tokens: self.to_tokens(blocks),
            // An empty sum of floats is -0.
            prefill_seconds_recovered: 0.0
                + measured
                    .map(|(time, hit)| self.saved(time, *hit))
                    .sum::<f64>(),
        }
    }

    pub(crate) fn to_tokens(&self, blocks: u64) -> u64 {
        blocks * u64::from(self.workload.block_tokens())
    }

    pub(crate) fn requests(&self) -> usize {
        self.workload.requests().len()
    }
}

/// Seconds saved, by prompt length and depth of the hit.
///
/// Every price is asked for once. Bounds and schedules look up the same prices again and again, and some cost models take a
/// microsecond to find one. Takes 8 bytes per gainful touch, less where prompts have equal lengths.
struct Savings {
    /// By request: where the row of its prompt length begins.
    rows: Vec<usize>,
    seconds: Vec<f64>,
}

impl Savings {
    fn new(
        workload: &Workload,
        cost: &(dyn PrefillCost + Send + Sync),
        intervals: &Intervals,
    ) -> Self {
        let mut longest_hit: BTreeMap<u32, u32> = BTreeMap::new();
        for (time, request) in (0..).zip(workload.requests()) {
            let depth = longest_hit.entry(request.prompt_tokens).or_default();
            *depth = (*depth).max(intervals.gainful_depth(time));
        }
        let mut seconds = Vec::new();
        let mut starts = BTreeMap::new();
        for (prompt_tokens, depth) in longest_hit {
            starts.insert(prompt_tokens, seconds.len());
            let prompt = u64::from(prompt_tokens);
            let cold = cost.prefill(prompt, 0).seconds;
            seconds.extend((0..=depth).map(|hit_blocks| {
                let hit_tokens = u64::from(hit_blocks) * u64::from(workload.block_tokens());
                cold - cost.prefill(prompt, hit_tokens).seconds
            }));
        }
        let row = |request: &trace::Request| starts[&request.prompt_tokens];
        Self {
            rows: workload.requests().iter().map(row).collect(),
            seconds,
        }
    }

    /// What all requests save if each hits as much as it can.
    fn ceiling(&self, intervals: &Intervals) -> f64 {
        let most = |time| {
            let depths = 0..=intervals.gainful_depth(time);
            depths.map(|depth| self.of(time, depth)).fold(0.0, f64::max)
        };
        // An empty sum of floats is -0.
        0.0 + (0..intervals.requests()).map(most).sum::<f64>()
    }

    fn most_per_block(&self, intervals: &Intervals) -> f64 {
        let of_request = |time| {
            let depths = 1..=intervals.gainful_depth(time);
            let per_block = depths.map(|depth| self.of(time, depth) / f64::from(depth));
            per_block.fold(0.0, f64::max)
        };
        let each = (0..intervals.requests()).map(of_request);
        each.fold(0.0, f64::max)
    }

    fn of(&self, time: Time, hit_blocks: u32) -> f64 {
        self.seconds[self.rows[time as usize] + hit_blocks as usize]
    }
}
