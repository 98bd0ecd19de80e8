//! Upper bounds with their proofs, and proofs checked.

use oracle::{Certificate, Oracle, OracleOptions, OracleSetting};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::experiment::Experiment;
use crate::oracles::jobs;
use crate::progress::Progress;

/// A certificate, and what it holds for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertifiedBound {
    /// What it holds for.
    #[serde(flatten)]
    pub setting: OracleSetting,
    /// The bound and the prices that prove it.
    pub certificate: Certificate,
}

impl Experiment {
    /// The upper bound in seconds of every scenario and capacity, with its proof.
    ///
    /// # Errors
    /// If nothing is measured, or a model resumes only from saved states.
    pub fn certify(
        &self,
        options: &OracleOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<CertifiedBound>, ExperimentError> {
        self.need_kv_per_token("oracle certify")?;
        let prepared = self.prepare(progress)?;
        let jobs: Vec<_> = prepared.iter().flat_map(jobs).collect();
        progress.stage("certifying bounds", jobs.len() as u64);
        let certify = |(oracle, setting): (&Oracle<'_>, OracleSetting)| {
            let certificate = oracle.certificate(setting.capacity_bytes, options)?;
            progress.advance(1);
            Some(CertifiedBound {
                setting,
                certificate,
            })
        };
        Ok(jobs.into_par_iter().filter_map(certify).collect())
    }

    /// The seconds that the prices of each certificate prove, computed from traces and costs alone. The settings say which
    /// trace and cost model each is about, by their place in the experiment and their name.
    ///
    /// # Errors
    /// If a certificate is about a trace, model, GPU or cost model that the experiment lacks, or does not prove what it claims.
    pub fn verify(
        &self,
        certified: &[CertifiedBound],
        progress: &dyn Progress,
    ) -> Result<Vec<f64>, ExperimentError> {
        progress.stage("checking proofs", certified.len() as u64);
        let check = |bound: &CertifiedBound| {
            let trace = self.traces.get(bound.setting.trace_index);
            // A bound holds for one model on one GPU under one cost model: all three must be those of the certificate.
            let setting = &bound.setting;
            let price = self.prices.iter().find(|price| {
                let named = (&price.model.name, &price.gpu.name, &price.cost.name);
                named == (&setting.model, &setting.gpu, &setting.cost)
            });
            let (Some(trace), Some(price)) = (trace, price) else {
                return Err(ExperimentError::NotCertified {
                    trace: setting.trace.clone(),
                    cost: setting.cost.clone(),
                    model: setting.model.clone(),
                    gpu: setting.gpu.clone(),
                });
            };
            let cost = price.cost.cost.as_ref();
            let proven = oracle::verify(&trace.workload, cost, &bound.certificate)?;
            progress.advance(1);
            Ok(proven)
        };
        certified.par_iter().map(check).collect()
    }
}
