//! `oracle`: the bracket at each capacity of each trace.

use std::time::Instant;

use anyhow::{Result, bail};
use cli::input::{Pricing, trace_record};
use cli::output::{Format, check_writable, write_output};
use cli::progress::progress_bar;
use oracle::{BlockMemory, Oracle, OracleRun, OracleSetting};
use rayon::prelude::*;
use replay::{SCHEMA, TraceRecord};
use serde::Serialize;
use trace::Loaded;

use crate::args::{Brackets, Effort};

/// Everything the command found.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    traces: Vec<TraceRecord>,
    runs: Vec<OracleRun>,
}

pub(crate) fn brackets(args: &Brackets) -> Result<()> {
    args.output.out.as_deref().map_or(Ok(()), check_writable)?;
    let pricing = args.input.pricing()?;
    if args.no_bypass {
        pricing.need_kv_per_token("--no-bypass")?;
    }
    start(&args.effort)?;
    let traces = args.input.load()?;
    let report = Report {
        schema: SCHEMA,
        traces: traces.iter().map(trace_record).collect(),
        runs: run(args, &pricing, &traces)?,
    };
    let text = match args.output.format {
        Format::Table => reports::oracle_table(&report.traces, &report.runs),
        Format::Json => reports::json(&report),
        Format::Csv => reports::csv(&report.runs),
    };
    write_output(&text, args.output.out.as_deref())
}

/// What every command that brackets capacities does first.
pub(crate) fn start(effort: &Effort) -> Result<()> {
    if effort.capacities.is_empty() {
        bail!("name at least one capacity");
    }
    if let Some(threads) = effort.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads))
            .build_global()?;
    }
    Ok(())
}

fn run(args: &Brackets, pricing: &Pricing, traces: &[Loaded]) -> Result<Vec<OracleRun>> {
    let oracles: Vec<_> = traces
        .par_iter()
        .map(|loaded| prepare(loaded, pricing, &args.effort))
        .collect::<Result<_>>()?;
    let jobs: Vec<_> = traces
        .iter()
        .zip(&oracles)
        .flat_map(|(loaded, oracle)| {
            settings(loaded, pricing, &args.effort).map(move |setting| (oracle, setting))
        })
        .collect();
    let bar = progress_bar(jobs.len() as u64, "bracketing capacities");
    let options = args.effort.options();
    let one = |(oracle, setting): (&Oracle<'_>, OracleSetting)| {
        let clock = args.timings.then(Instant::now);
        let capacity_bytes = setting.capacity_bytes;
        let run = OracleRun {
            setting,
            bracket: oracle.bracket(capacity_bytes, &options),
            no_bypass: args
                .no_bypass
                .then(|| oracle.no_bypass(capacity_bytes))
                .flatten(),
            wall_seconds: clock.map(|clock| clock.elapsed().as_secs_f64()),
        };
        bar.inc(1);
        run
    };
    let runs = jobs.into_par_iter().map(one).collect();
    bar.finish_and_clear();
    Ok(runs)
}

/// The oracle of one trace, ready for any capacity.
pub(crate) fn prepare<'a>(
    loaded: &'a Loaded,
    pricing: &'a Pricing,
    effort: &Effort,
) -> Result<Oracle<'a>> {
    let warmup = effort.warmup.requests(loaded.workload.requests().len());
    let warmup = u32::try_from(warmup)?;
    let memory = BlockMemory {
        block_bytes: pricing.block_bytes(&loaded.workload),
        state: pricing.memory.state,
    };
    let cost = pricing.cost.as_ref();
    Ok(Oracle::new(&loaded.workload, cost, memory, warmup))
}

/// One setting for each capacity of a trace.
pub(crate) fn settings<'a>(
    loaded: &'a Loaded,
    pricing: &'a Pricing,
    effort: &'a Effort,
) -> impl Iterator<Item = OracleSetting> + 'a {
    let workload = &loaded.workload;
    let block_bytes = pricing.block_bytes(workload);
    effort.capacities.iter().map(move |capacity| OracleSetting {
        trace: loaded.path.display().to_string(),
        cost: pricing.cost.name().to_owned(),
        model: pricing.model.name.clone(),
        gpu: pricing.gpu.name.clone(),
        warmup_requests: effort.warmup.requests(workload.requests().len()),
        capacity_bytes: capacity.bytes(workload.distinct_blocks(), block_bytes),
    })
}
