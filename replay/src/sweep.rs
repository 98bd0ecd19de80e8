//! Many runs, in parallel.

use rayon::prelude::*;
use trace::RequestResult;

use crate::record::RunRecord;
use crate::run::{Plan, Scenario, run};

/// Requests between two words of progress.
const PROGRESS_STEP: u64 = 1024;

/// A run that is done.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its record.
    pub record: RunRecord,
    /// What happened to each measured request, where it was asked for; else empty.
    pub per_request: Vec<RequestResult>,
}

/// Runs every plan on every scenario, in parallel. The results come in the order of scenarios, then plans, whatever the number of threads.
///
/// `progress` is told from time to time how many more requests were served, by any thread.
pub fn sweep(
    scenarios: &[(Scenario<'_>, Vec<Plan>)],
    per_request: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Vec<Finished> {
    let runs: Vec<_> = scenarios
        .iter()
        .flat_map(|(scenario, plans)| plans.iter().map(move |plan| (scenario, plan)))
        .collect();
    runs.par_iter()
        .map(|(scenario, plan)| finish(scenario, plan, per_request, progress))
        .collect()
}

fn finish(
    scenario: &Scenario<'_>,
    plan: &Plan,
    per_request: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> Finished {
    let mut rows = Vec::new();
    let mut served = 0;
    let record = run(
        scenario,
        plan,
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
