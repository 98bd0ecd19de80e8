//! From flags to an experiment to a report.

use std::path::Path;

use anyhow::{Context, Result, bail};
use cli::output::{Forms, check_writable};
use experiment::{Replayed, Replays};
use reports::{csv, policy_matrix, replay_page};
use trace::ResultWriter;

use crate::args::Replay;

pub(crate) fn replay(args: &Replay) -> Result<()> {
    let policies = args.policies.factories()?;
    check_per_request(args, policies.len())?;
    let replays = Replays {
        policies,
        evict_unit: args.evict_unit.map(Into::into),
        oracle: args.oracle.then(|| args.effort.options()),
        seed: args.policies.seed,
        timings: args.timings,
        per_request: args.per_request.is_some(),
    };
    let capacities = &args.capacities.capacities;
    let replayed = args.common.ask(capacities, |experiment, progress| {
        experiment.replay(&replays, progress)
    })?;
    if let Some(path) = &args.per_request {
        write_requests(path, &replayed)?;
    }
    args.common.output.emit(&Forms {
        record: &replayed.report,
        page: &replay_page,
        markdown: Some(&policy_matrix),
        csv: &|report| csv(&report.runs),
    })?;
    all_ran_to_their_end(&replayed)
}

fn check_per_request(args: &Replay, policies: usize) -> Result<()> {
    let Some(path) = &args.per_request else {
        return Ok(());
    };
    let prices = params::split_list(&args.common.input.cost).len();
    let runs =
        args.common.input.traces.len() * args.capacities.capacities.len() * policies * prices;
    if runs > 1 {
        bail!(
            "--per-request is for a single run, and this makes {runs}: name one trace, capacity, cost model and policy"
        );
    }
    check_writable(path)
}

fn write_requests(path: &Path, replayed: &Replayed) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut writer = ResultWriter::create(path).with_context(context)?;
    for row in replayed.per_request.iter().flatten() {
        writer.write(row).with_context(context)?;
    }
    writer.finish().with_context(context)
}

/// The report says which runs ended early; the exit code says that one did.
fn all_ran_to_their_end(replayed: &Replayed) -> Result<()> {
    let runs = &replayed.report.runs;
    let failed = runs.iter().filter(|run| run.failure.is_some()).count();
    if failed > 0 {
        bail!("{failed} of {} runs ended early", runs.len());
    }
    Ok(())
}
