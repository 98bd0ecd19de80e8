//! From measurements to a calibration file.

use std::collections::BTreeSet;

use roofline::{
    AllReduceRates, Calibration, DecodeRates, EngineRates, FitSource, GemmRates, Gpu, HostRates,
    PrefillRates, RooflineError, StreamRates,
};

use crate::fit::fit;
use crate::fitted::Fitted;
use crate::measurement::Measurement;
use crate::rows::{median, rows};

/// Fits every operator that was measured on `gpu`; the others are those of `base`.
///
/// # Errors
/// [`RooflineError::Invalid`] if nothing was measured on that GPU; [`RooflineError::UnknownName`] for a model that is
/// no preset.
pub fn fit_calibration(
    gpu: &Gpu,
    measurements: &[Measurement],
    base: &Calibration,
) -> Result<Calibration, RooflineError> {
    let of: Vec<&Measurement> = measurements.iter().filter(|m| m.gpu == gpu.name).collect();
    if of.is_empty() {
        let measured: BTreeSet<&str> = measurements.iter().map(|m| m.gpu.as_str()).collect();
        let measured = measured.into_iter().collect::<Vec<_>>().join(", ");
        let problem = format!("nothing was measured on {}; measured: {measured}", gpu.name);
        return Err(RooflineError::invalid("the measurements", problem));
    }
    let mut calibrating = Calibrating {
        gpu,
        of: &of,
        result: base.clone(),
    };
    if base.gpu != gpu.name {
        // What another GPU's efficiencies were fitted to says nothing about this one.
        calibrating.result.fitted.clear();
        calibrating.result.gpu.clone_from(&gpu.name);
    }
    calibrating.operator::<GemmRates>()?;
    calibrating.operator::<PrefillRates>()?;
    calibrating.operator::<DecodeRates>()?;
    calibrating.operator::<StreamRates>()?;
    calibrating.operator::<AllReduceRates>()?;
    calibrating.operator::<HostRates>()?;
    // Last: it is fitted on top of the kernels.
    calibrating.operator::<EngineRates>()?;
    Ok(calibrating.result)
}

struct Calibrating<'a> {
    gpu: &'a Gpu,
    of: &'a [&'a Measurement],
    result: Calibration,
}

impl Calibrating<'_> {
    fn operator<R: Fitted>(&mut self) -> Result<(), RooflineError> {
        let rows = rows::<R>(self.of, self.gpu, &self.result)?;
        if rows.is_empty() {
            return Ok(());
        }
        let pairs: Vec<_> = rows.iter().map(|r| (r.shape, r.seconds)).collect();
        let mut rates = fit(&R::start(), self.gpu, &pairs);
        rates.set(
            &rates
                .values()
                .into_iter()
                .map(four_digits)
                .collect::<Vec<_>>(),
        );
        let error = |(shape, s): &(R::Shape, f64)| (rates.seconds(self.gpu, shape) / s - 1.0).abs();
        let sources: BTreeSet<&str> = self
            .of
            .iter()
            .filter(|m| m.work.operator() == R::OPERATOR)
            .map(|m| m.source)
            .collect();
        self.result.fitted.retain(|f| f.operator != R::OPERATOR);
        self.result.fitted.push(FitSource {
            operator: R::OPERATOR.to_owned(),
            source: sources.into_iter().collect::<Vec<_>>().join(", "),
            shapes: pairs.len(),
            median_error: four_digits(median(pairs.iter().map(error).collect())),
        });
        *R::place(&mut self.result) = rates;
        Ok(())
    }
}

/// Four significant digits: more than the measurements hold, few enough to read.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
