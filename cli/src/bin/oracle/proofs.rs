//! `oracle certify` and `oracle verify`: bounds with their proofs, and the proofs checked.

use std::fs;

use anyhow::{Context, Result, bail};
use cli::output::{check_writable, write_output};
use cli::progress::TerminalProgress;
use experiment::CertifiedBound;

use crate::args::{Certify, Verify};

pub(crate) fn certify(args: &Certify) -> Result<()> {
    args.out.as_deref().map_or(Ok(()), check_writable)?;
    let prices = args.input.prices()?;
    args.threads.start()?;
    let progress = TerminalProgress::default();
    let capacities = &args.capacities.capacities;
    let experiment = args.input.experiment(prices, capacities, &progress)?;
    let certified = experiment.certify(&args.effort.options(), &progress)?;
    progress.finish();
    write_output(&reports::json(&certified), args.out.as_deref())
}

pub(crate) fn verify(args: &Verify) -> Result<()> {
    let path = args.certificates.display();
    let text =
        fs::read_to_string(&args.certificates).with_context(|| format!("cannot read {path}"))?;
    let certified: Vec<CertifiedBound> =
        serde_json::from_str(&text).with_context(|| format!("{path} holds no certificates"))?;
    if certified.is_empty() {
        bail!("{path} holds no certificates");
    }
    let prices = args.input.prices()?;
    args.threads.start()?;
    let progress = TerminalProgress::default();
    let experiment = args.input.experiment(prices, &[], &progress)?;
    let proven = experiment.verify(&certified, &progress)?;
    progress.finish();
    let line = |(bound, proven): (&CertifiedBound, f64)| {
        let setting = &bound.setting;
        format!(
            "{}, {}, {} blocks: no policy saves more than {proven:.6} s\n",
            setting.trace, setting.cost, bound.certificate.capacity_blocks,
        )
    };
    let lines: String = certified.iter().zip(proven).map(line).collect();
    write_output(&lines, None)
}
