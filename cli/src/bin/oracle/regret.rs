//! `oracle regret`: where policies lose.

use anyhow::Result;
use cache::{CacheConfig, EvictUnit};
use cli::input::{Pricing, trace_record};
use cli::lists::policy_factories;
use cli::output::{Format, check_writable, write_output};
use cli::progress::progress_bar;
use oracle::{Oracle, RegretRun, Setting};
use policies::{PolicyContext, PolicyFactory};
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

pub(crate) fn regret(args: &Regret) -> Result<()> {
    args.output.out.as_deref().map_or(Ok(()), check_writable)?;
    let pairs = policy_factories(&args.policies, &args.admissions)?;
    let pricing = args.input.pricing()?;
    pricing.need_kv_per_token("oracle regret")?;
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

fn run(
    args: &Regret,
    pricing: &Pricing,
    traces: &[Loaded],
    pairs: &[PolicyFactory],
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
            let shape = CacheConfig {
                capacity_bytes: setting.capacity_bytes,
                block_bytes,
                block_tokens: loaded.workload.block_tokens(),
                evict_unit: EvictUnit::Block,
                state: None,
            };
            let context = PolicyContext {
                cost: Some(pricing.cost.clone()),
                ..PolicyContext::new(shape, args.seed)
            };
            let run = compare(args, oracle, setting, pair, shape, &context);
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
    factory: &PolicyFactory,
    shape: CacheConfig,
    context: &PolicyContext,
) -> RegretRun {
    let mut policy = factory.build(context);
    let options = args.effort.options();
    RegretRun {
        regret: oracle.regret(shape, policy.as_mut(), &options),
        capacity_blocks: shape.capacity_blocks(),
        policy: factory.eviction().to_owned(),
        admission: factory.admission().to_owned(),
        setting,
    }
}
