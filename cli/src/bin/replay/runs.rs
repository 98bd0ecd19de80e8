//! From flags to runs to a report.

use anyhow::{Context, Result, bail};
use cache::EvictUnit;
use cli::input::{Pricing, trace_record};
use cli::lists::policy_factories;
use cli::output::{check_writable, write_output};
use cli::progress::progress_bar;
use policies::PolicyFactory;
use replay::{Baseline, Finished, Plan, Report, SCHEMA, Scenario, score_against_oracle, sweep};
use trace::{Loaded, ResultWriter};

use crate::args::{Format, Replay};

/// What the flags ask for, checked before anything is loaded.
struct Request {
    policies: Vec<PolicyFactory>,
    pricing: Pricing,
}

pub(crate) fn replay(args: &Replay) -> Result<()> {
    let request = read_request(args)?;
    if let Some(threads) = args.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads))
            .build_global()?;
    }
    let traces = args.input.load()?;
    traces
        .iter()
        .try_for_each(|loaded| leaves_something(args, loaded))?;
    let finished = run(args, &request, &traces);
    if let Some(path) = &args.per_request {
        write_requests(path, &finished)?;
    }
    let report = Report {
        schema: SCHEMA,
        traces: traces.iter().map(trace_record).collect(),
        runs: finished
            .into_iter()
            .map(|finished| finished.record)
            .collect(),
    };
    let text = match args.output.format {
        Format::Table => reports::run_table(&report),
        Format::Markdown => reports::run_markdown(&report),
        Format::Json => reports::json(&report),
        Format::Csv => reports::runs_csv(&report),
    };
    write_output(&text, args.output.out.as_deref())
}

fn read_request(args: &Replay) -> Result<Request> {
    let policies = policy_factories(&args.policies, &args.admissions)?;
    let runs = args.input.traces.len() * args.capacities.len() * policies.len();
    if runs == 0 {
        bail!("nothing to run: name at least one capacity");
    }
    if args.per_request.is_some() && runs > 1 {
        bail!(
            "--per-request is for a single run, and this makes {runs}: name one trace, capacity and policy"
        );
    }
    for path in args.output.out.iter().chain(&args.per_request) {
        check_writable(path)?;
    }
    let pricing = args.input.pricing()?;
    if pricing.memory.state.is_some() && args.evict_unit.is_some() {
        bail!(
            "{} resumes only from saved states, where leaves go whole and states alone: leave --evict-unit out",
            pricing.model.name
        );
    }
    Ok(Request { policies, pricing })
}

fn leaves_something(args: &Replay, loaded: &Loaded) -> Result<()> {
    let requests = loaded.workload.requests().len();
    if requests > 0 && args.warmup.requests(requests) == requests {
        bail!(
            "--warmup leaves none of the {requests} requests of {} to measure",
            loaded.path.display()
        );
    }
    Ok(())
}

fn run(args: &Replay, request: &Request, traces: &[Loaded]) -> Vec<Finished> {
    let baselines: Vec<_> = traces
        .iter()
        .map(|loaded| Baseline::new(&loaded.workload, request.pricing.cost.as_ref(), args.warmup))
        .collect();
    let names: Vec<_> = traces
        .iter()
        .map(|loaded| loaded.path.display().to_string())
        .collect();
    let scenarios: Vec<_> = traces
        .iter()
        .zip(&baselines)
        .zip(&names)
        .map(|((loaded, baseline), name)| {
            let scenario = Scenario {
                trace: name,
                workload: &loaded.workload,
                cost: &request.pricing.cost,
                baseline,
                model: &request.pricing.model.name,
                gpu: &request.pricing.gpu.name,
                block_bytes: request.pricing.block_bytes(&loaded.workload),
                state: request.pricing.memory.state,
            };
            (scenario, plans(args, request, loaded))
        })
        .collect();
    let requests: usize = scenarios
        .iter()
        .map(|(scenario, plans)| scenario.workload.requests().len() * plans.len())
        .sum();
    let bar = progress_bar(requests as u64, "replaying requests");
    let mut finished = sweep(&scenarios, args.per_request.is_some(), &|served| {
        bar.inc(served);
    });
    bar.finish_and_clear();
    if args.oracle {
        hold_against_oracle(&scenarios, &mut finished, args.capacities.len());
    }
    finished
}

fn hold_against_oracle(
    scenarios: &[(Scenario<'_>, Vec<Plan>)],
    finished: &mut [Finished],
    capacities: usize,
) {
    let bar = progress_bar((scenarios.len() * capacities) as u64, "asking the oracle");
    let mut rest = finished;
    for (scenario, plans) in scenarios {
        let (runs, others) = rest.split_at_mut(plans.len());
        score_against_oracle(scenario, runs, &oracle::Options::default(), &|| bar.inc(1));
        rest = others;
    }
    bar.finish_and_clear();
}

/// Every combination of capacity, policy and admission, capacities outermost.
fn plans(args: &Replay, request: &Request, loaded: &Loaded) -> Vec<Plan> {
    let mut plans = Vec::new();
    for capacity in &args.capacities {
        let capacity_bytes = capacity.bytes(
            loaded.workload.distinct_blocks(),
            request.pricing.block_bytes(&loaded.workload),
        );
        plans.extend(request.policies.iter().map(|policy| Plan {
            policy: policy.clone(),
            capacity_bytes,
            evict_unit: args.evict_unit.map_or(EvictUnit::Block, EvictUnit::from),
            seed: args.seed,
            timings: args.timings,
        }));
    }
    plans
}

fn write_requests(path: &std::path::Path, finished: &[Finished]) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut writer = ResultWriter::create(path).with_context(context)?;
    for row in finished.iter().flat_map(|run| &run.per_request) {
        writer.write(row).with_context(context)?;
    }
    writer.finish().with_context(context)
}
