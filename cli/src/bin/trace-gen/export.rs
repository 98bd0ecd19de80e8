//! `trace-gen export`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use trace_import::export::{EXPORT_FORMATS, Export, ExportFormat};

use crate::report;

#[derive(clap::Args)]
#[command(after_help = details())]
pub(crate) struct Args {
    /// The format to write.
    #[arg(value_parser = PossibleValuesParser::new(EXPORT_FORMATS.iter().map(|format| format.name)))]
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
    let format = EXPORT_FORMATS
        .iter()
        .find(|format| format.name == args.format);
    let export = Export {
        format: format.context("no such format")?,
        trace: &args.trace,
        out: &args.out,
        block_tokens: args.block_tokens,
    };
    let records = export.run()?;
    report(&args.out, &format!("{records} records"));
    Ok(())
}

fn details() -> String {
    let one = |format: &&_| {
        let ExportFormat {
            name,
            about,
            details,
            ..
        } = format;
        format!("{name}: {about}\n{details}\n")
    };
    EXPORT_FORMATS
        .iter()
        .map(one)
        .collect::<Vec<_>>()
        .join("\n")
}
