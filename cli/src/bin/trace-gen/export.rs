//! `trace-gen export`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use trace_gen::export::{Export, TARGETS};

use crate::report;

#[derive(clap::Args)]
#[command(after_help = details())]
pub(crate) struct Args {
    /// The format to write.
    #[arg(value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    format: String,
    /// The trace.
    trace: PathBuf,
    /// The file to write.
    #[arg(short, long)]
    out: PathBuf,
    /// Tokens of a block, where a trace of tokens is written as blocks [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let target = TARGETS.iter().find(|target| target.name == args.format);
    let export = Export {
        target: target.context("no such format")?,
        trace: &args.trace,
        out: &args.out,
        block_tokens: args.block_tokens,
    };
    let records = export.run()?;
    report(&args.out, &format!("{records} records"));
    Ok(())
}

fn details() -> String {
    let one = |target: &&_| {
        let trace_gen::export::Target {
            name,
            about,
            details,
            ..
        } = target;
        format!("{name}: {about}\n{details}\n")
    };
    TARGETS.iter().map(one).collect::<Vec<_>>().join("\n")
}
