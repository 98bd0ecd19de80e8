//! Many runs, in parallel.

use rayon::prelude::*;
use trace::RequestResult;

use crate::record::RunRecord;
use crate::run::{RunConfig, Scenario, run};

/// Requests between two reports of progress.
const PROGRESS_STEP: u64 = 1024;

/// A run that is done.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its record.
    pub record: RunRecord,
    /// What happened to each measured request, where it was asked for; else empty.
    pub per_request: Vec<RequestResult>,
}

/// Runs every configuration of every scenario, in parallel. The answer has one list per scenario, in the order of its
/// configurations, whatever the number of threads.
///
/// `progress` is told from time to time how many more requests were served, by any thread.
pub fn sweep(
    scenarios: &[(Scenario<'_>, Vec<RunConfig>)],
    per_request: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<Vec<Finished>> {
    let of_scenario = |(scenario, configs): &(Scenario<'_>, Vec<RunConfig>)| {
        configs
            .par_iter()
            .map(|config| finish(scenario, config, per_request, progress))
            .collect()
    };
    scenarios.par_iter().map(of_scenario).collect()
}

fn finish(
    scenario: &Scenario<'_>,
    config: &RunConfig,
    per_request: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Finished {
    let mut rows = Vec::new();
    let mut served = 0;
    let record = run(
        scenario,
        config,
        |row| {
            if per_request {
                rows.push(row);
            }
        },
        || {
            served += 1;
            if served == PROGRESS_STEP {
                progress(served);
                served = 0;
            }
        },
    );
    progress(served);
    Finished {
        record,
        per_request: rows,
    }
}
