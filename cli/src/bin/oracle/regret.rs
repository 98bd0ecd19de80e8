//! `oracle regret`: where policies lose.

use anyhow::{Result, bail};
use cli::input::{Pricing, trace_record};
use cli::lists::split_list;
use cli::output::{Format, check_writable, write_output};
use cli::progress::progress_bar;
use oracle::{Oracle, RegretRun, Setting};
use policies::{AdmissionSpec, EvictionSpec, PolicyError, Setup};
use rayon::prelude::*;
use replay::{SCHEMA, TraceRecord};
use serde::Serialize;
use trace::Loaded;

use crate::args::Regret;
use crate::brackets::{prepare, settings, start};

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    traces: Vec<TraceRecord>,
    runs: Vec<RegretRun>,
}

type PolicyPair = (EvictionSpec, AdmissionSpec);

pub(crate) fn regret(args: &Regret) -> Result<()> {
    args.output.out.as_deref().map_or(Ok(()), check_writable)?;
    let pairs = pairs(args)?;
    let pricing = args.input.pricing()?;
    start(&args.effort)?;
    let traces = args.input.load()?;
    let report = Report {
        schema: SCHEMA,
        traces: traces.iter().map(trace_record).collect(),
        runs: run(args, &pricing, &traces, &pairs)?,
    };
    let text = match args.output.format {
        Format::Table => reports::regret_table(&report.runs),
        Format::Json => reports::json(&report),
        Format::Csv => reports::regret_csv(&report.runs),
    };
    write_output(&text, args.output.out.as_deref())
}

fn pairs(args: &Regret) -> Result<Vec<PolicyPair>> {
    let names = |lists: &[String]| {
        lists
            .iter()
            .flat_map(|list| split_list(list))
            .collect::<Vec<_>>()
    };
    let admissions = names(&args.admissions)
        .iter()
        .map(|name| policies::admission(name))
        .collect::<Result<Vec<_>, PolicyError>>()?;
    let mut pairs = Vec::new();
    for name in names(&args.policies) {
        let eviction = policies::eviction(&name)?;
        pairs.extend(
            admissions
                .iter()
                .map(|admission| (eviction.clone(), admission.clone())),
        );
    }
    if pairs.is_empty() {
        bail!("name at least one policy and one admission policy");
    }
    Ok(pairs)
}

fn run(
    args: &Regret,
    pricing: &Pricing,
    traces: &[Loaded],
    pairs: &[PolicyPair],
) -> Result<Vec<RegretRun>> {
    let oracles: Vec<_> = traces
        .par_iter()
        .map(|loaded| prepare(loaded, pricing, &args.effort))
        .collect::<Result<_>>()?;
    let mut jobs = Vec::new();
    for (loaded, oracle) in traces.iter().zip(&oracles) {
        for setting in settings(loaded, pricing, &args.effort) {
            jobs.extend(
                pairs
                    .iter()
                    .map(|pair| (loaded, oracle, setting.clone(), pair)),
            );
        }
    }
    let bar = progress_bar(jobs.len() as u64, "comparing with the oracle");
    let runs = jobs
        .into_par_iter()
        .map(|(loaded, oracle, setting, pair)| {
            let block_bytes = pricing.block_bytes(&loaded.workload);
            let run = compare(
                args,
                oracle,
                setting,
                pair,
                block_bytes,
                loaded.workload.block_tokens(),
            );
            bar.inc(1);
            run
        })
        .collect();
    bar.finish_and_clear();
    Ok(runs)
}

fn compare(
    args: &Regret,
    oracle: &Oracle<'_>,
    setting: Setting,
    (eviction, admission): &PolicyPair,
    block_bytes: u64,
    block_tokens: u32,
) -> RegretRun {
    let capacity_bytes = setting.capacity_bytes;
    let setup = Setup {
        capacity_blocks: capacity_bytes / block_bytes,
        capacity_bytes,
        block_bytes,
        block_tokens,
        seed: args.seed,
    };
    let mut policy = policies::build(eviction, admission, &setup);
    let options = args.effort.options();
    RegretRun {
        regret: oracle.regret(capacity_bytes, block_bytes, &mut policy, &options),
        capacity_blocks: setup.capacity_blocks,
        policy: eviction.text.clone(),
        admission: admission.text.clone(),
        setting,
    }
}
