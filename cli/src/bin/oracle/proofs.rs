//! `oracle certify` and `oracle verify`: bounds with their proofs, and the proofs checked.

use std::fs;

use anyhow::{Context, Result, bail};
use cli::output::write_output;
use experiment::CertifiedBound;

use crate::args::{Certify, Verify};

pub(crate) fn certify(args: &Certify) -> Result<()> {
    let options = args.effort.options();
    let capacities = &args.capacities.capacities;
    let certified = args.common.ask(capacities, |experiment, progress| {
        experiment.certify(&options, progress)
    })?;
    write_output(
        &reports::json(&certified),
        args.common.output.out.as_deref(),
    )
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
    let proven = args.common.ask(&[], |experiment, progress| {
        experiment.verify(&certified, progress)
    })?;
    let line = |(bound, proven): (&CertifiedBound, f64)| {
        let setting = &bound.setting;
        format!(
            "{}, {}, {} blocks: no policy saves more than {proven:.6} s\n",
            setting.trace, setting.cost, bound.certificate.capacity_blocks,
        )
    };
    let lines: String = certified.iter().zip(proven).map(line).collect();
    write_output(&lines, args.common.output.out.as_deref())
}
