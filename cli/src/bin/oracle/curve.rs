//! `oracle curve`: hits at every capacity from one pass.

use anyhow::Result;
use cli::input::{Pricing, trace_record};
use cli::output::{Format, check_writable, write_output};
use oracle::{CurvePoint, HitCurves};
use rayon::prelude::*;
use replay::{SCHEMA, TraceRecord};
use serde::Serialize;
use trace::{Loaded, Workload};

use crate::args::Curve;

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    traces: Vec<TraceRecord>,
    points: Vec<CurvePoint>,
}

pub(crate) fn curve(args: &Curve) -> Result<()> {
    args.output.out.as_deref().map_or(Ok(()), check_writable)?;
    let pricing = args.input.pricing()?;
    pricing.need_kv_per_token("oracle curve")?;
    let traces = args.input.load()?;
    let points: Vec<Vec<_>> = traces
        .par_iter()
        .map(|loaded| points(args, &pricing, loaded))
        .collect::<Result<_>>()?;
    let report = Report {
        schema: SCHEMA,
        traces: traces.iter().map(trace_record).collect(),
        points: points.concat(),
    };
    let text = match args.output.format {
        Format::Table => reports::curve_table(&report.traces, &report.points),
        Format::Json => reports::json(&report),
        Format::Csv => reports::csv(&report.points),
    };
    write_output(&text, args.output.out.as_deref())
}

fn points(args: &Curve, pricing: &Pricing, loaded: &Loaded) -> Result<Vec<CurvePoint>> {
    let workload = &loaded.workload;
    let warmup = u32::try_from(args.warmup.requests(workload.requests().len()))?;
    let curves = HitCurves::new(workload, warmup);
    let trace = loaded.path.display().to_string();
    let capacities = capacities(args, pricing, workload).into_iter();
    Ok(capacities
        .map(|capacity_blocks| curves.point(&trace, capacity_blocks))
        .collect())
}

fn capacities(args: &Curve, pricing: &Pricing, workload: &Workload) -> Vec<u64> {
    let distinct = workload.distinct_blocks();
    if args.capacities.is_empty() {
        return spaced(distinct, args.points);
    }
    let block_bytes = pricing.block_bytes(workload);
    let blocks =
        |capacity: &cli::capacity::Capacity| capacity.bytes(distinct, block_bytes) / block_bytes;
    args.capacities.iter().map(blocks).collect()
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
