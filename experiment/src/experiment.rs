//! The experiment as one value.

use cache::{EvictUnit, PolicyFactory};
use oracle::OracleOptions;
use rayon::prelude::*;
use replay::{Baseline, Report, RunRecord, Scenario, TraceRecord, Warmup};
use trace::{Loaded, RequestResult};

use crate::capacity::Capacity;
use crate::error::ExperimentError;
use crate::pricing::Pricing;
use crate::progress::Progress;
use crate::traces::trace_record;

/// Which traces, under which prices, in caches of which capacities. Every combination of a trace and a pricing is a
/// scenario; every question about an experiment is answered for each scenario, traces outermost.
///
/// ```no_run
/// use experiment::{Experiment, Pricing, Replays, Silent, load_traces};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let experiment = Experiment {
///     traces: load_traces(&["agent.parquet".into()], None, &Silent)?,
///     prices: vec![Pricing::named("course-7b", "course-h100", "course")?],
///     capacities: vec!["10%".parse()?],
///     warmup: "0".parse()?,
/// };
/// let lru = policies::factory(&policies::eviction("lru")?, &policies::admission("all")?);
/// let answer = experiment.replay(&Replays::of(vec![lru]), &Silent)?;
/// println!("{:?}", answer.report.runs[0].prefill_recovered);
/// # Ok(())
/// # }
/// ```
pub struct Experiment {
    /// The loaded traces.
    pub traces: Vec<Loaded>,
    /// The prices.
    pub prices: Vec<Pricing>,
    /// The capacities.
    pub capacities: Vec<Capacity>,
    /// Leading requests that fill the cache and are not measured.
    pub warmup: Warmup,
}

/// What to replay in every scenario, at every capacity.
pub struct Replays {
    /// The policies.
    pub policies: Vec<PolicyFactory>,
    /// What is evicted at a time; `None` is block by block, the only choice for models that resume from saved states.
    pub evict_unit: Option<EvictUnit>,
    /// Score every run against the oracle, with this effort.
    pub oracle: Option<OracleOptions>,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether to read the clock.
    pub timings: bool,
    /// Whether to keep what happened to each request.
    pub per_request: bool,
}

impl Replays {
    /// Policies with everything else at its default.
    pub fn of(policies: Vec<PolicyFactory>) -> Self {
        Self {
            policies,
            evict_unit: None,
            oracle: None,
            seed: 0,
            timings: false,
            per_request: false,
        }
    }
}

/// The answer to [`Experiment::replay`].
pub struct Replayed {
    /// One record per run: scenarios outermost, then capacities, then policies.
    pub report: Report<RunRecord>,
    /// Per run what happened to each measured request, where it was asked for.
    pub per_request: Vec<Vec<RequestResult>>,
}

impl Experiment {
    /// What reports say of the traces.
    pub(crate) fn trace_records(&self) -> Vec<TraceRecord> {
        self.traces.iter().map(trace_record).collect()
    }

    /// Refuses an experiment in which nothing is measured.
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        for (list, what) in [
            (self.traces.is_empty(), "trace"),
            (self.prices.is_empty(), "cost model"),
            (self.capacities.is_empty(), "capacity"),
        ] {
            if list {
                return Err(ExperimentError::Empty(what));
            }
        }
        for loaded in &self.traces {
            let requests = loaded.workload.requests().len();
            if requests > 0 && self.warmup.requests(requests) == requests {
                return Err(ExperimentError::NothingMeasured {
                    trace: loaded.path.clone(),
                    requests,
                });
            }
        }
        Ok(())
    }

    /// Every trace under every pricing, with what does not depend on the policy.
    pub(crate) fn scenarios(&self, progress: &dyn Progress) -> Vec<Scenario<'_>> {
        let pairs = self.pairs();
        progress.stage("pricing traces", pairs.len() as u64);
        let scenario = |(trace_index, pricing): (usize, &Pricing)| {
            let scenario = self.scenario(trace_index, pricing);
            progress.advance(1);
            scenario
        };
        pairs
            .into_par_iter()
            .map(|(index, price)| scenario((index, &self.prices[price])))
            .collect()
    }

    /// The indices of every trace and every pricing, traces outermost.
    pub(crate) fn pairs(&self) -> Vec<(usize, usize)> {
        let prices = 0..self.prices.len();
        (0..self.traces.len())
            .flat_map(|trace| prices.clone().map(move |price| (trace, price)))
            .collect()
    }

    fn scenario(&self, trace_index: usize, pricing: &Pricing) -> Scenario<'_> {
        let loaded = &self.traces[trace_index];
        let workload = &loaded.workload;
        Scenario {
            trace_index,
            trace: loaded.path.display().to_string(),
            workload,
            cost: pricing.cost.clone(),
            baseline: Baseline::new(workload, pricing.cost.cost.as_ref(), self.warmup),
            model: pricing.model.name.clone(),
            gpu: pricing.gpu.name.clone(),
            block_bytes: pricing.block_bytes(workload),
            state: pricing.memory.state,
        }
    }

    /// The capacities in bytes for a trace and a model.
    pub(crate) fn capacities_bytes(&self, scenario: &Scenario<'_>) -> Vec<u64> {
        let distinct_blocks = scenario.workload.distinct_blocks();
        let bytes = |capacity: &Capacity| capacity.bytes(distinct_blocks, scenario.block_bytes);
        self.capacities.iter().map(bytes).collect()
    }
}
