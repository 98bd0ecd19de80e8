//! `trace-gen inspect`.

use std::path::PathBuf;

use anyhow::Result;
use cli::output::{Forms, Output};
use reports::{csv, inspect_page};
use trace_import::inspect::inspect;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace.
    file: PathBuf,
    /// Tokens per block, for a trace of tokens [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    args.output.check()?;
    args.output.emit(&Forms {
        record: &inspect(&args.file, args.block_tokens)?,
        page: &inspect_page,
        markdown: None,
        csv: &|summary| csv(std::slice::from_ref(summary)),
    })
}
