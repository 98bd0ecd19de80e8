//! Policies replayed in every scenario.

use cache::EvictUnit;
use replay::{Finished, Report, RunConfig, Scenario, score_against_oracle, sweep};

use crate::error::ExperimentError;
use crate::experiment::{Experiment, Replayed, Replays};
use crate::progress::Progress;

impl Experiment {
    /// Replays every scenario at every capacity under every policy.
    ///
    /// # Errors
    /// If nothing is measured, or leaves are to be evicted in a way that a model does not allow.
    pub fn replay(
        &self,
        replays: &Replays,
        progress: &dyn Progress,
    ) -> Result<Replayed, ExperimentError> {
        self.check()?;
        if replays.policies.is_empty() {
            return Err(ExperimentError::Empty("policy"));
        }
        self.check_evict_unit(replays.evict_unit)?;
        let scenarios: Vec<_> = self
            .scenarios(progress)
            .into_iter()
            .map(|scenario| {
                let configs = self.configs(replays, &scenario);
                (scenario, configs)
            })
            .collect();
        let requests = |(scenario, configs): &(Scenario<'_>, Vec<RunConfig>)| {
            (scenario.workload.requests().len() * configs.len()) as u64
        };
        progress.stage("replaying requests", scenarios.iter().map(requests).sum());
        let mut finished = sweep(&scenarios, replays.per_request, &|served| {
            progress.advance(served);
        });
        self.score(replays, &scenarios, &mut finished, progress);
        Ok(self.replayed(finished))
    }

    fn check_evict_unit(&self, evict_unit: Option<EvictUnit>) -> Result<(), ExperimentError> {
        let from_states = self
            .prices
            .iter()
            .find(|pricing| pricing.memory.state.is_some());
        match from_states {
            Some(pricing) if evict_unit.is_some() => Err(ExperimentError::EvictUnit {
                model: pricing.model.name.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Every combination of capacity and policy, capacities outermost.
    fn configs(&self, replays: &Replays, scenario: &Scenario<'_>) -> Vec<RunConfig> {
        let config = |capacity_bytes| {
            replays.policies.iter().map(move |policy| RunConfig {
                policy: policy.clone(),
                capacity_bytes,
                evict_unit: replays.evict_unit.unwrap_or_default(),
                seed: replays.seed,
                timings: replays.timings,
            })
        };
        let capacities = self.capacities_bytes(scenario);
        capacities.into_iter().flat_map(config).collect()
    }

    fn score(
        &self,
        replays: &Replays,
        scenarios: &[(Scenario<'_>, Vec<RunConfig>)],
        finished: &mut [Vec<Finished>],
        progress: &dyn Progress,
    ) {
        let Some(options) = &replays.oracle else {
            return;
        };
        let brackets = scenarios.len() * self.capacities.len();
        progress.stage("asking the oracle", brackets as u64);
        for ((scenario, _), runs) in scenarios.iter().zip(finished) {
            score_against_oracle(scenario, runs, options, &|| progress.advance(1));
        }
    }

    fn replayed(&self, finished: Vec<Vec<Finished>>) -> Replayed {
        let runs = finished.into_iter().flatten();
        let (records, per_request) = runs.map(|run| (run.record, run.per_request)).unzip();
        Replayed {
            report: Report::new(self.trace_records(), records),
            per_request,
        }
    }
}
