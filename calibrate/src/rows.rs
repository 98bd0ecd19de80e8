//! Measurements of one operator on one GPU, as rows that can be fitted and split.

use std::collections::{BTreeMap, BTreeSet};

use roofline::{Calibration, Gpu, Kernel, RooflineError};

use crate::fitted::Fitted;
use crate::measurement::{Measurement, TimedWork};

/// Fewer weights or head shapes than this cannot be split by; the whole shape is the key then.
const FEWEST_KEYS: usize = 6;

/// One shape and its time: the median of all measurements of it in one source and model, by the operator's name where it has one.
#[derive(Debug, Clone)]
pub(crate) struct FitRow<S> {
    pub(crate) shape: S,
    pub(crate) seconds: f64,
    pub(crate) model: String,
    pub(crate) work: TimedWork,
}

/// The rows of `R` among the measurements, in a fixed order.
pub(crate) fn rows<R: Fitted>(
    measurements: &[&Measurement],
    gpu: &Gpu,
    base: &Calibration,
) -> Result<Vec<FitRow<R::Shape>>, RooflineError> {
    let mut of_shape: BTreeMap<(&str, String, &str), Vec<&Measurement>> = BTreeMap::new();
    for of in measurements {
        let key = (of.model.as_str(), shape_key(&of.work), of.label.as_str());
        of_shape.entry(key).or_default().push(of);
    }
    let mut rows = Vec::new();
    for ((model, _, _), of) in of_shape {
        let Some(shape) = R::shape(of[0], gpu, base)? else {
            continue;
        };
        let seconds = median(of.iter().map(|m| m.seconds).collect());
        rows.push(FitRow {
            shape,
            seconds,
            model: model.to_owned(),
            work: of[0].work,
        });
    }
    Ok(rows)
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Quantile of sorted values, interpolated; NaN of none.
pub(crate) fn quantile(sorted: &[f64], at: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = at * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * position.fract()
}

/// How rows are kept apart when some are held out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// By weight or head shape, where there are enough of them; else by the whole shape.
    Shape,
    /// By model: fitted to all but one, tried on that one.
    Model,
}

/// The fold of each row. Rows of one key are in one fold, so that none is predicted from its like.
pub(crate) fn folds<S>(rows: &[FitRow<S>], split: Split, count: usize) -> Vec<usize> {
    let keys = match split {
        Split::Model => rows.iter().map(|r| r.model.clone()).collect(),
        Split::Shape => split_keys(rows),
    };
    let mut distinct: Vec<&String> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
    // Neighbouring shapes must not go to one fold together; models stay in order.
    if split == Split::Shape {
        distinct.sort_by_key(|key| fnv1a(key));
    }
    let count = if split == Split::Model {
        distinct.len()
    } else {
        count
    };
    let fold_of: BTreeMap<&String, usize> = distinct
        .into_iter()
        .enumerate()
        .map(|(i, key)| (key, i % count.max(1)))
        .collect();
    keys.iter().map(|key| fold_of[key]).collect()
}

fn split_keys<S>(rows: &[FitRow<S>]) -> Vec<String> {
    let coarse: Vec<String> = rows.iter().map(|r| coarse_key(&r.work)).collect();
    if coarse.iter().collect::<BTreeSet<_>>().len() >= FEWEST_KEYS {
        coarse
    } else {
        rows.iter().map(|r| shape_key(&r.work)).collect()
    }
}

/// The whole shape.
pub(crate) fn shape_key(work: &TimedWork) -> String {
    format!("{work:?}")
}

/// The weight's or the heads' shape, without how many tokens met it; of a whole prefill, all but the GPUs.
fn coarse_key(work: &TimedWork) -> String {
    match work {
        TimedWork::Kernel(Kernel::Gemm(g)) => format!("{} {}", g.columns, g.inner),
        TimedWork::Kernel(Kernel::Prefill(a)) => {
            format!("{} {} {}", a.heads, a.kv_heads, a.head_dim)
        }
        TimedWork::Kernel(Kernel::Decode(a)) => {
            format!("{} {} {}", a.heads, a.kv_heads, a.pair_width)
        }
        TimedWork::Kernel(Kernel::AllReduce(r)) => format!("{}", r.bytes),
        TimedWork::Kernel(Kernel::Stream(_) | Kernel::HostCopy(_)) => shape_key(work),
        TimedWork::Prefill {
            batch,
            prompt_tokens,
            ..
        } => format!("{batch} {prompt_tokens}"),
    }
}

/// Fowler, Noll and Vo's hash: a fixed order that has nothing to do with sizes.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
