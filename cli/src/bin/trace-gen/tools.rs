//! Commands that make something of traces that exist.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use trace::AtomicFile;

use crate::report;

/// What `fit` is asked.
#[derive(Args)]
pub struct Fit {
    /// The trace.
    trace: PathBuf,
    /// The file of parameters to write.
    #[arg(short, long, value_name = "FIT.toml")]
    out: PathBuf,
    /// Tokens of a block, for a trace of tokens [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
    /// One set of parameters for all sessions, instead of one for each.
    #[arg(long)]
    pooled: bool,
}

/// Fits and writes the parameters.
pub fn fit(args: &Fit) -> Result<()> {
    let plan = trace_gen::fit::fit(&args.trace, args.block_tokens, args.pooled)?;
    let text = toml::to_string(&plan).context("cannot write TOML")?;
    let mut file = AtomicFile::create(&args.out).with_context(|| args.out.display().to_string())?;
    file.write_all(text.as_bytes())?;
    file.commit()
        .with_context(|| args.out.display().to_string())?;
    report(&args.out, &format!("{} parts", plan.part.len()));
    Ok(())
}
