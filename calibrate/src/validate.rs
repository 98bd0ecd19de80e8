//! How far predictions are from measurements that they were not fitted to.

use std::collections::{BTreeMap, BTreeSet};

use roofline::{
    AllReduceRates, Calibration, DecodeRates, Deployment, EngineRates, GemmRates, Gpu, HostRates,
    Kernel, KernelTiming, Model, PrefillRates, RooflineError, StreamRates,
};
use serde::Serialize;

use crate::fit::fit;
use crate::fitted::Fitted;
use crate::measurement::{Measurement, TimedWork};
use crate::rows::{FitRow, Split, folds, quantile, rows, shape_key};

/// Distribution of `predicted / measured - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Median of its absolute value.
    pub median: f64,
    /// 90th percentile of its absolute value.
    pub p90: f64,
    /// Largest absolute value.
    pub worst: f64,
    /// Median with its sign: above 0, predictions are too long.
    pub bias: f64,
}

/// Errors of one operator on one GPU over one range of shapes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorRow {
    /// The operator.
    pub operator: &'static str,
    /// The GPU.
    pub gpu: String,
    /// The kind of file.
    pub source: &'static str,
    /// Which shapes; "all" for all of them.
    pub range: &'static str,
    /// Distinct shapes.
    pub shapes: usize,
    /// With the datasheet's peaks.
    pub datasheet: Errors,
    /// With the course's constant utilisation.
    pub constant: Errors,
    /// With the calibration in force, as it is: what a user gets.
    pub as_shipped: Errors,
    /// That calibration was fitted to measurements of this operator from this kind of file, so `as_shipped` does not show how it
    /// does elsewhere.
    pub seen_by_the_fit: bool,
    /// With efficiencies fitted anew to this source alone, on shapes (or a model) that the fit did not see; null where nothing
    /// can be held out.
    pub refit: Option<Errors>,
}

/// Prediction errors by operator and range of shapes.
///
/// A `calibration`, or else each GPU's own, is tried as it is on every row. For `refit`, the rows of each operator, GPU and source
/// are split into `fold_count` parts by `split`, and each part is predicted by a fit to the others.
///
/// # Errors
/// [`RooflineError::UnknownName`] for a GPU or model in the measurements that is no preset.
pub fn validate(
    measurements: &[Measurement],
    calibration: Option<&Calibration>,
    split: Split,
    fold_count: usize,
) -> Result<Vec<ErrorRow>, RooflineError> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<&Measurement>> = BTreeMap::new();
    for m in measurements {
        groups
            .entry((m.work.operator(), &m.gpu, m.source))
            .or_default()
            .push(m);
    }
    let mut table = Vec::new();
    for ((operator, gpu, source), of) in groups {
        let gpu = Gpu::named(gpu)?;
        let base = match calibration {
            Some(calibration) => calibration.clone(),
            None => Calibration::named(&gpu.calibration)?,
        };
        let group = OperatorGroup {
            gpu,
            base,
            split,
            fold_count,
            source,
        };
        table.extend(match operator {
            "gemm" => group.errors::<GemmRates>(&of),
            "prefill-attention" => group.errors::<PrefillRates>(&of),
            "decode-attention" => group.errors::<DecodeRates>(&of),
            "elementwise" => group.errors::<StreamRates>(&of),
            "all-reduce" => group.errors::<AllReduceRates>(&of),
            "host-copy" => group.errors::<HostRates>(&of),
            _ => group.errors::<EngineRates>(&of),
        }?);
    }
    Ok(table)
}

/// Measurements of one operator on one GPU from one source, and how they are tried.
struct OperatorGroup {
    gpu: Gpu,
    base: Calibration,
    split: Split,
    fold_count: usize,
    source: &'static str,
}

/// Relative errors of one row.
struct RowErrors {
    range: &'static str,
    datasheet: f64,
    constant: f64,
    as_shipped: f64,
    refit: Option<f64>,
}

impl OperatorGroup {
    fn errors<R: Fitted>(&self, of: &[&Measurement]) -> Result<Vec<ErrorRow>, RooflineError> {
        let rows = rows::<R>(of, &self.gpu, &self.base)?;
        let refits = self.held_out::<R>(&rows);
        let tried = rows.iter().zip(refits);
        let tried: Vec<_> = tried
            .map(|(row, refit)| self.tried(row, refit))
            .collect::<Result<_, _>>()?;
        let ranges: BTreeSet<&str> = tried.iter().map(|t| t.range).collect();
        let mut table = Vec::new();
        for range in std::iter::once("all").chain(ranges) {
            let of_range: Vec<&RowErrors> = tried
                .iter()
                .filter(|t| range == "all" || t.range == range)
                .collect();
            if let (Some(first), false) = (of.first(), of_range.is_empty()) {
                table.push(self.error_row(first.work.operator(), range, &of_range));
            }
        }
        Ok(table)
    }

    /// Predictions by fits that did not see the row's fold; none where the shape was among what they saw.
    fn held_out<R: Fitted>(&self, rows: &[FitRow<R::Shape>]) -> Vec<Option<f64>> {
        let fold_of = folds(rows, self.split, self.fold_count);
        let mut predicted = vec![None; rows.len()];
        for fold in fold_of.iter().copied().collect::<BTreeSet<_>>() {
            let seen = || {
                rows.iter()
                    .zip(&fold_of)
                    .filter(|(_, f)| **f != fold)
                    .map(|(r, _)| r)
            };
            let training: Vec<_> = seen().map(|r| (r.shape, r.seconds)).collect();
            if training.is_empty() {
                continue;
            }
            let rates = fit(&R::start(), &self.gpu, &training);
            let known: BTreeSet<String> = seen().map(|r| shape_key(&r.work)).collect();
            for (i, row) in rows.iter().enumerate().filter(|(i, _)| fold_of[*i] == fold) {
                if !known.contains(&shape_key(&row.work)) {
                    predicted[i] = Some(rates.seconds(&self.gpu, &row.shape));
                }
            }
        }
        predicted
    }

    fn tried<S>(&self, row: &FitRow<S>, refit: Option<f64>) -> Result<RowErrors, RooflineError> {
        let error = |seconds: f64| seconds / row.seconds - 1.0;
        Ok(RowErrors {
            range: range(&self.gpu, &row.work),
            datasheet: error(self.reference(row, KernelTiming::Datasheet)?),
            constant: error(self.reference(row, KernelTiming::Constant(self.gpu.utilisation))?),
            as_shipped: error(self.reference(row, KernelTiming::Calibrated(&self.base))?),
            refit: refit.map(error),
        })
    }

    fn reference<S>(
        &self,
        row: &FitRow<S>,
        timing: KernelTiming<'_>,
    ) -> Result<f64, RooflineError> {
        match row.work {
            TimedWork::Kernel(kernel) => Ok(timing.seconds(&self.gpu, &kernel)),
            TimedWork::Prefill {
                gpus,
                batch,
                prompt_tokens,
            } => {
                let model = Model::named(&row.model)?;
                let deployment = Deployment {
                    model: &model,
                    gpu: &self.gpu,
                    gpus,
                    timing,
                };
                let cost = deployment.prefill_time(u64::from(batch), 0, u64::from(prompt_tokens));
                Ok(cost.total.seconds)
            }
        }
    }

    fn error_row(
        &self,
        operator: &'static str,
        range: &'static str,
        of: &[&RowErrors],
    ) -> ErrorRow {
        let refits: Vec<f64> = of.iter().filter_map(|t| t.refit).collect();
        ErrorRow {
            operator,
            gpu: self.gpu.name.clone(),
            source: self.source,
            range,
            shapes: of.len(),
            datasheet: errors(of.iter().map(|t| t.datasheet).collect()),
            constant: errors(of.iter().map(|t| t.constant).collect()),
            as_shipped: errors(of.iter().map(|t| t.as_shipped).collect()),
            seen_by_the_fit: self.base.gpu == self.gpu.name
                && self
                    .base
                    .fitted
                    .iter()
                    .any(|f| f.operator == operator && f.source.contains(self.source)),
            refit: (!refits.is_empty()).then(|| errors(refits)),
        }
    }
}

fn errors(mut signed: Vec<f64>) -> Errors {
    signed.sort_by(f64::total_cmp);
    let bias = quantile(&signed, 0.5);
    let mut absolute: Vec<f64> = signed.into_iter().map(f64::abs).collect();
    absolute.sort_by(f64::total_cmp);
    Errors {
        median: quantile(&absolute, 0.5),
        p90: quantile(&absolute, 0.9),
        worst: quantile(&absolute, 1.0),
        bias,
    }
}

/// The range of shapes that an observation counts to.
fn range(gpu: &Gpu, work: &TimedWork) -> &'static str {
    match work {
        TimedWork::Kernel(kernel @ Kernel::Gemm(_)) => {
            if kernel.flops() / kernel.bytes() > gpu.ridge() {
                "compute-bound"
            } else {
                "memory-bound"
            }
        }
        TimedWork::Kernel(Kernel::Prefill(a)) => match (a.cached_tokens > 0.0, a.new_tokens) {
            (false, new) if new < 128.0 => "new < 128",
            (false, new) if new < 1024.0 => "new 128 to 1023",
            (false, _) => "new >= 1024",
            (true, new) if new < 128.0 => "on a prefix, new < 128",
            (true, new) if new < 1024.0 => "on a prefix, new 128 to 1023",
            (true, _) => "on a prefix, new >= 1024",
        },
        TimedWork::Kernel(Kernel::Decode(a)) if a.context_tokens <= 1024.0 => "context <= 1024",
        TimedWork::Kernel(Kernel::Decode(_)) => "context > 1024",
        TimedWork::Kernel(kernel) if kernel.bytes() < 1e6 => "under 1 MB",
        TimedWork::Kernel(kernel) if kernel.bytes() < 64e6 => "1 to 64 MB",
        TimedWork::Kernel(_) => "64 MB and more",
        TimedWork::Prefill { batch: 1, .. } => "one prompt",
        TimedWork::Prefill { .. } => "a batch of prompts",
    }
}
