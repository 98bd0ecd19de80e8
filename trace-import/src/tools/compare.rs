//! How far two traces are apart.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use trace::{LoadOptions, NO_BLOCK, Workload, load};

use super::sketch::Sketch;
use crate::error::ImportError;

/// Two traces, dimension by dimension.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The first file.
    pub a: String,
    /// The second file.
    pub b: String,
    /// What was compared.
    pub dimensions: Vec<Dimension>,
}

/// One property of requests, sessions or blocks in both traces.
#[derive(Clone, Debug, Serialize)]
pub struct Dimension {
    /// Its name, with the unit last.
    pub name: &'static str,
    /// Values in the first trace.
    pub a_values: u64,
    /// Values in the second trace.
    pub b_values: u64,
    /// Greatest difference of the two cumulative distributions: 0 the same, 1 nothing in common; `null` where one of them
    /// has no values.
    pub kolmogorov: Option<f64>,
    /// Mean over the quantiles of |log2(a / b)|: 1 is a factor of two. Quantiles that are 0 count as half of the smallest
    /// unit. `null` where one of them has no values.
    pub log2_distance: Option<f64>,
    /// Quantiles from 1% to 99%, ready to plot.
    pub quantiles: Vec<QuantilePair>,
}

/// A quantile of both traces.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct QuantilePair {
    /// A share of the values, from 0 to 1.
    pub share: f64,
    /// At most this in the first trace, within 4.5%.
    pub a: f64,
    /// At most this in the second trace, within 4.5%.
    pub b: f64,
}

/// Compares two traces; `block_tokens` as in [`LoadOptions`]. Depths and distances are in tokens, so block sizes may differ.
///
/// # Errors
/// Where a trace cannot be loaded.
pub fn compare(a: &Path, b: &Path, block_tokens: Option<u32>) -> Result<Comparison, ImportError> {
    let measured = [a, b].map(|path| {
        let options = LoadOptions {
            block_tokens,
            ..LoadOptions::default()
        };
        Ok::<_, ImportError>(measure(&load(path, &options)?.workload))
    });
    let [of_a, of_b] = measured;
    let (of_a, of_b) = (of_a?, of_b?);
    let pairs = DIMENSIONS.iter().zip(of_a.iter().zip(&of_b));
    Ok(Comparison {
        a: a.display().to_string(),
        b: b.display().to_string(),
        dimensions: pairs
            .map(|(&(name, unit), (a, b))| dimension(name, unit, a, b))
            .collect(),
    })
}

/// What is measured, each with its smallest unit.
const DIMENSIONS: [(&str, f64); 8] = [
    ("prompt_tokens", 1.0),
    ("output_tokens", 1.0),
    ("gap_seconds", 1e-6),
    ("session_gap_seconds", 1e-6),
    ("session_requests", 1.0),
    ("sharing_depth_tokens", 1.0),
    ("reuse_distance_tokens", 1.0),
    ("branch_factor", 1.0),
];

fn dimension(name: &'static str, unit: f64, a: &Sketch, b: &Sketch) -> Dimension {
    let both = a.total() > 0 && b.total() > 0;
    let quantiles: Vec<QuantilePair> = (1..100)
        .filter(|_| both)
        .map(|percent| {
            let share = f64::from(percent) / 100.0;
            QuantilePair {
                share,
                a: a.quantile(share),
                b: b.quantile(share),
            }
        })
        .collect();
    let log2 = |pair: &QuantilePair| {
        (pair.a.max(unit / 2.0) / pair.b.max(unit / 2.0))
            .log2()
            .abs()
    };
    let mean = quantiles.iter().map(log2).sum::<f64>() / quantiles.len().max(1) as f64;
    Dimension {
        name,
        a_values: a.total(),
        b_values: b.total(),
        kolmogorov: both.then(|| a.kolmogorov(b)),
        log2_distance: both.then_some(mean),
        quantiles,
    }
}

/// A sketch of each of [`DIMENSIONS`].
fn measure(workload: &Workload) -> [Sketch; 8] {
    let mut sketches: [Sketch; 8] = Default::default();
    let [
        prompts,
        outputs,
        gaps,
        session_gaps,
        session_requests,
        depths,
        distances,
        branches,
    ] = &mut sketches;
    let mut sessions: HashMap<u64, (i64, u64)> = HashMap::new();
    let mut before_us = None;
    let block_tokens = f64::from(workload.block_tokens());
    let seconds = |from_us: i64, to_us: i64| (to_us - from_us) as f64 / 1e6;
    for request in workload.requests() {
        let at_us = request.arrival_us;
        prompts.add(f64::from(request.prompt_tokens));
        outputs.add(f64::from(request.output_tokens));
        depths.add(f64::from(request.seen_blocks.min(request.prompt_blocks)) * block_tokens);
        if let Some(before_us) = before_us.replace(at_us) {
            gaps.add(seconds(before_us, at_us));
        }
        let session = sessions.entry(request.session_id).or_insert((at_us, 0));
        if session.1 > 0 {
            session_gaps.add(seconds(session.0, at_us));
        }
        *session = (at_us, session.1 + 1);
    }
    for (_, requests) in sessions.values() {
        session_requests.add(*requests as f64);
    }
    reuse_distances(workload, distances);
    branch_factors(workload, branches);
    sketches
}

/// Tokens touched from one touch of a block to its next: neighbours on a path have mostly the same, so they are counted
/// together.
fn reuse_distances(workload: &Workload, distances: &mut Sketch) {
    const NEVER: u64 = u64::MAX;
    let block_tokens = f64::from(workload.block_tokens());
    let mut last = vec![NEVER; workload.distinct_blocks() as usize];
    let (mut run, mut times) = (NEVER, 0);
    for (at, block) in workload.arena().iter().enumerate() {
        let before = std::mem::replace(&mut last[block.index()], at as u64);
        let distance = if before == NEVER {
            NEVER
        } else {
            at as u64 - before
        };
        if distance != run {
            flush(distances, run, times, block_tokens);
            (run, times) = (distance, 0);
        }
        times += 1;
    }
    flush(distances, run, times, block_tokens);
}

fn flush(distances: &mut Sketch, run: u64, times: u64, block_tokens: f64) {
    if run != u64::MAX {
        distances.add_many(run as f64 * block_tokens, times);
    }
}

/// Children of every block that has any, and of the empty prefix.
fn branch_factors(workload: &Workload, branches: &mut Sketch) {
    let blocks = workload.distinct_blocks() as usize;
    let mut children = vec![0_u32; blocks + 1];
    for parent in workload.parents() {
        let place = if *parent == NO_BLOCK {
            blocks
        } else {
            parent.index()
        };
        children[place] += 1;
    }
    for count in children.into_iter().filter(|count| *count > 0) {
        branches.add(f64::from(count));
    }
}
