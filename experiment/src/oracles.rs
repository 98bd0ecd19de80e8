//! The oracle asked about every scenario: brackets, curves, regret.

use std::time::Instant;

use cache::PolicyFactory;
use oracle::{CurvePoint, HitCurves, Oracle, OracleOptions, OracleRun, OracleSetting, RegretRun};
use rayon::prelude::*;
use replay::Report;

use crate::error::ExperimentError;
use crate::experiment::Experiment;
use crate::pricing::Pricing;
use crate::progress::Progress;

/// What to ask the oracle at every capacity.
#[derive(Clone, Debug, Default)]
pub struct Brackets {
    /// How hard it tries.
    pub options: OracleOptions,
    /// Also replay Belady for engines that cannot refuse a running request's blocks.
    pub no_bypass: bool,
    /// Whether to read the clock.
    pub timings: bool,
}

/// The capacities of a curve.
#[derive(Clone, Copy, Debug)]
pub enum CurvePoints {
    /// Those of the experiment.
    Capacities,
    /// This many from 1 block to all distinct blocks, evenly spaced on a logarithmic scale; fewer where they coincide.
    Spaced(u32),
}

/// Policies to compare with the best schedule.
#[derive(Clone, Debug)]
pub struct Regrets {
    /// The policies.
    pub policies: Vec<PolicyFactory>,
    /// How hard the oracle tries.
    pub options: OracleOptions,
    /// Seed of everything random.
    pub seed: u64,
}

/// An oracle that is ready for any capacity of one scenario.
pub(crate) struct Prepared<'a> {
    oracle: Oracle<'a>,
    pricing: &'a Pricing,
    settings: Vec<OracleSetting>,
}

impl Experiment {
    /// The oracle's bounds in every scenario, at every capacity.
    ///
    /// # Errors
    /// If nothing is measured, or the question makes no sense for a model.
    pub fn brackets(
        &self,
        question: &Brackets,
        progress: &dyn Progress,
    ) -> Result<Report<OracleRun>, ExperimentError> {
        if question.no_bypass {
            self.need_kv_per_token("--no-bypass")?;
        }
        let prepared = self.prepare(progress)?;
        let jobs: Vec<_> = prepared.iter().flat_map(jobs).collect();
        progress.stage("bracketing capacities", jobs.len() as u64);
        let bracket = |(oracle, setting): (&Oracle<'_>, OracleSetting)| {
            let clock = question.timings.then(Instant::now);
            let capacity_bytes = setting.capacity_bytes;
            let run = OracleRun {
                setting,
                bracket: oracle.bracket(capacity_bytes, &question.options),
                no_bypass: question
                    .no_bypass
                    .then(|| oracle.no_bypass(capacity_bytes))
                    .flatten(),
                wall_seconds: clock.map(|clock| clock.elapsed().as_secs_f64()),
            };
            progress.advance(1);
            run
        };
        let runs = jobs.into_par_iter().map(bracket).collect();
        Ok(Report::new(self.trace_records(), runs))
    }

    /// Hits of LRU, second-occurrence LRU and Belady at many capacities of every trace. Prices do not matter, but for the
    /// bytes of a block, for which the first counts.
    ///
    /// # Errors
    /// If a model resumes only from saved states.
    pub fn curve(
        &self,
        points: CurvePoints,
        progress: &dyn Progress,
    ) -> Result<Report<CurvePoint>, ExperimentError> {
        self.need_kv_per_token("oracle curve")?;
        progress.stage("drawing curves", self.traces.len() as u64);
        let of_trace = |trace_index| {
            let points = self.curve_of(trace_index, points);
            progress.advance(1);
            points
        };
        let runs: Vec<Vec<_>> = (0..self.traces.len())
            .into_par_iter()
            .map(of_trace)
            .collect();
        Ok(Report::new(self.trace_records(), runs.concat()))
    }

    fn curve_of(&self, trace_index: usize, points: CurvePoints) -> Vec<CurvePoint> {
        let loaded = &self.traces[trace_index];
        let workload = &loaded.workload;
        let distinct_blocks = workload.distinct_blocks();
        let capacities = match (points, self.prices.first()) {
            (CurvePoints::Spaced(count), _) => spaced(distinct_blocks, count),
            (CurvePoints::Capacities, None) => Vec::new(),
            (CurvePoints::Capacities, Some(pricing)) => {
                let block_bytes = pricing.block_bytes(workload);
                let of_bytes = self.capacities.iter();
                of_bytes
                    .map(|capacity| capacity.bytes(distinct_blocks, block_bytes) / block_bytes)
                    .collect()
            }
        };
        let curves = HitCurves::new(workload, self.warmup_of(trace_index));
        let trace = loaded.path.display().to_string();
        capacities
            .into_iter()
            .map(|capacity_blocks| curves.point(trace_index, &trace, capacity_blocks))
            .collect()
    }

    /// Where policies lose against the best feasible schedule, in every scenario, at every capacity.
    ///
    /// # Errors
    /// If nothing is measured, or a model resumes only from saved states.
    pub fn regret(
        &self,
        question: &Regrets,
        progress: &dyn Progress,
    ) -> Result<Report<RegretRun>, ExperimentError> {
        self.need_kv_per_token("oracle regret")?;
        let prepared = self.prepare(progress)?;
        let jobs: Vec<_> = prepared
            .iter()
            .flat_map(|prepared| {
                jobs(prepared).flat_map(move |(_, setting)| {
                    let policies = question.policies.iter();
                    policies.map(move |policy| (prepared, setting.clone(), policy))
                })
            })
            .collect();
        progress.stage("comparing with the oracle", jobs.len() as u64);
        let compare =
            |(prepared, setting, policy): (&Prepared<'_>, OracleSetting, &PolicyFactory)| {
                let run = prepared.compare(setting, policy, question);
                progress.advance(1);
                run
            };
        let runs = jobs.into_par_iter().map(compare).collect();
        Ok(Report::new(self.trace_records(), runs))
    }

    pub(crate) fn need_kv_per_token(&self, what: &'static str) -> Result<(), ExperimentError> {
        self.prices
            .iter()
            .try_for_each(|pricing| pricing.need_kv_per_token(what))
    }

    fn warmup_of(&self, trace_index: usize) -> u32 {
        let requests = self.traces[trace_index].workload.requests().len();
        // A loaded trace has fewer than 2^32 requests: their indices are u32.
        u32::try_from(self.warmup.requests(requests)).unwrap_or(u32::MAX)
    }

    /// One oracle per scenario.
    pub(crate) fn prepare(
        &self,
        progress: &dyn Progress,
    ) -> Result<Vec<Prepared<'_>>, ExperimentError> {
        self.check()?;
        let pairs = self.pairs();
        progress.stage("pricing traces", pairs.len() as u64);
        let prepare = |(trace_index, price): (usize, usize)| {
            let pricing = &self.prices[price];
            let workload = &self.traces[trace_index].workload;
            let prepared = Prepared {
                oracle: Oracle::new(
                    workload,
                    pricing.cost.cost.as_ref(),
                    pricing.block_memory(workload),
                    self.warmup_of(trace_index),
                ),
                pricing,
                settings: self.settings(trace_index, pricing),
            };
            progress.advance(1);
            prepared
        };
        Ok(pairs.into_par_iter().map(prepare).collect())
    }

    /// One setting per capacity.
    fn settings(&self, trace_index: usize, pricing: &Pricing) -> Vec<OracleSetting> {
        let loaded = &self.traces[trace_index];
        let workload = &loaded.workload;
        let block_bytes = pricing.block_bytes(workload);
        let setting = |capacity_bytes| OracleSetting {
            trace_index,
            trace: loaded.path.display().to_string(),
            cost: pricing.cost.name.clone(),
            calibration: pricing.cost.calibration.clone(),
            model: pricing.model.name.clone(),
            gpu: pricing.gpu.name.clone(),
            warmup_requests: self.warmup.requests(workload.requests().len()),
            capacity_bytes,
        };
        self.capacities
            .iter()
            .map(|capacity| setting(capacity.bytes(workload.distinct_blocks(), block_bytes)))
            .collect()
    }
}

/// One job per capacity.
pub(crate) fn jobs<'p>(
    prepared: &'p Prepared<'_>,
) -> impl Iterator<Item = (&'p Oracle<'p>, OracleSetting)> + 'p {
    let settings = prepared.settings.iter();
    settings.map(|setting| (&prepared.oracle, setting.clone()))
}

impl Prepared<'_> {
    fn compare(
        &self,
        setting: OracleSetting,
        policy: &PolicyFactory,
        question: &Regrets,
    ) -> RegretRun {
        let cache = self.oracle.cache_config(setting.capacity_bytes);
        let context = cache::PolicyContext {
            cost: Some(self.pricing.cost.cost.clone()),
            ..cache::PolicyContext::new(cache, question.seed)
        };
        let mut built = policy.build(&context);
        RegretRun {
            regret: self.oracle.regret(
                setting.capacity_bytes,
                built.as_mut(),
                policy.track(),
                &question.options,
            ),
            capacity_blocks: cache.capacity_blocks(),
            policy: policy.eviction().to_owned(),
            admission: policy.admission().to_owned(),
            setting,
        }
    }
}

/// Capacities from 1 to `most`, evenly spaced on a logarithmic scale; fewer where they coincide.
fn spaced(most: u32, points: u32) -> Vec<u64> {
    let step = f64::from(most.max(1)).ln() / f64::from(points.max(2) - 1);
    let mut capacities: Vec<_> = (0..points)
        .map(|index| (step * f64::from(index)).exp().round() as u64)
        .collect();
    capacities.dedup();
    capacities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_spaced_from_one_to_all() {
        assert_eq!(spaced(10_000, 5), [1, 10, 100, 1000, 10_000]);
        assert_eq!(spaced(3, 10), [1, 2, 3]);
        assert_eq!(spaced(0, 3), [1]);
        assert_eq!(spaced(9, 1), [1]);
    }
}
