//! Commands that make something of traces that exist.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use cli::output::{Forms, Output, write_output};
use reports::{compare_csv, compare_page};
use trace_import::tools::{self, By, Cut, Done, Draw, MergeIds};

use crate::{Out, report};

#[derive(Subcommand)]
pub(crate) enum Tool {
    /// Estimate the parameters of the family `agent` from a trace, as a plan that `trace-gen plan` generates from.
    Fit(Fit),
    /// Tell how far two traces are apart: lengths, gaps, sharing depth, reuse distance, branch factor.
    Compare(Compare),
    /// Keep a share of the sessions, whole, drawn without regard to their length or time.
    Sample {
        #[command(flatten)]
        files: Files,
        /// Share of the sessions, above 0 and at most 1.
        #[arg(long)]
        share: f64,
        /// Seed of the draw; of two shares of one seed the larger holds the smaller.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// What is kept as a whole.
        #[arg(long, value_enum, default_value_t = SampleBy::Session)]
        by: SampleBy,
        /// Keep those that are not drawn instead: with the same share and seed, the other part.
        #[arg(long)]
        rest: bool,
    },
    /// Keep a part of a trace, by place, by time, or both.
    Cut(CutArgs),
    /// Put several traces side by side, by arrival; sessions, templates and tenants of two traces are different ones.
    Merge {
        /// The traces.
        #[arg(required = true)]
        traces: Vec<PathBuf>,
        #[command(flatten)]
        out: Out,
        /// Equal block ids of two traces are the same block (otherwise every trace gets ids of its own).
        #[arg(long)]
        shared_ids: bool,
    },
    /// Let sessions change places: each starts when another one did and goes on at its own pace.
    ShuffleSessions {
        #[command(flatten)]
        files: Files,
        /// Seed of the shuffle.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Multiply all times: below 1 the same requests come faster.
    RescaleTime {
        #[command(flatten)]
        files: Files,
        /// The factor.
        #[arg(long)]
        factor: f64,
    },
    /// Replace what could tell whose a trace is: ids become keyed hashes, names become numbers; lengths, times and sharing
    /// stay.
    Anonymise {
        #[command(flatten)]
        files: Files,
        /// File with a secret that nobody can guess; without it nobody can tell which text a block was.
        #[arg(long, value_name = "FILE")]
        salt_file: PathBuf,
        /// Tokens of a block, for a trace of tokens, which becomes one of blocks [default: 16].
        #[arg(long)]
        block_tokens: Option<u32>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SampleBy {
    /// A session.
    Session,
    /// What shares its first block that at most one in a hundred requests has, for traces without sessions.
    Prefix,
}

#[derive(Args)]
pub(crate) struct Files {
    /// The trace.
    trace: PathBuf,
    #[command(flatten)]
    out: Out,
}

#[derive(Args)]
pub(crate) struct Fit {
    /// The trace.
    trace: PathBuf,
    /// The plan to write.
    #[arg(short, long, value_name = "FIT.toml")]
    out: PathBuf,
    /// Tokens of a block, for a trace of tokens [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
    /// One set of parameters for all sessions, instead of one for each.
    #[arg(long)]
    pooled: bool,
}

#[derive(Args)]
pub(crate) struct Compare {
    /// The first trace.
    a: PathBuf,
    /// The second trace.
    b: PathBuf,
    /// Tokens of a block, for traces of tokens [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct CutArgs {
    #[command(flatten)]
    files: Files,
    /// Leave out the first so many requests.
    #[arg(long, default_value_t = 0)]
    skip: u64,
    /// Keep at most so many requests.
    #[arg(long)]
    limit: Option<u64>,
    /// Keep arrivals from this second on.
    #[arg(long)]
    from: Option<f64>,
    /// Keep arrivals before this second.
    #[arg(long)]
    to: Option<f64>,
    /// Move the first kept arrival to 0.
    #[arg(long)]
    rebase: bool,
}

pub(crate) fn run(tool: Tool) -> Result<()> {
    match tool {
        Tool::Fit(args) => fit(&args),
        Tool::Compare(args) => compare(&args),
        Tool::Sample {
            files,
            share,
            seed,
            by,
            rest,
        } => {
            let by = match by {
                SampleBy::Session => By::Session,
                SampleBy::Prefix => By::Prefix,
            };
            let draw = Draw {
                share,
                seed,
                by,
                rest,
            };
            let done = tools::sample(&files.trace, &files.out.out, &draw)?;
            written(&files.out, done)
        }
        Tool::Cut(args) => cut(&args),
        Tool::Merge {
            traces,
            out,
            shared_ids,
        } => {
            let ids = if shared_ids {
                MergeIds::Shared
            } else {
                MergeIds::Separate
            };
            written(&out, tools::merge(&traces, &out.out, ids)?)
        }
        Tool::ShuffleSessions { files, seed } => written(
            &files.out,
            tools::shuffle_sessions(&files.trace, &files.out.out, seed)?,
        ),
        Tool::RescaleTime { files, factor } => written(
            &files.out,
            tools::rescale_time(&files.trace, &files.out.out, factor)?,
        ),
        Tool::Anonymise {
            files,
            salt_file,
            block_tokens,
        } => {
            let salt = std::fs::read_to_string(&salt_file)
                .with_context(|| salt_file.display().to_string())?;
            let done = tools::anonymise(&files.trace, &files.out.out, salt.trim(), block_tokens)?;
            written(&files.out, done)
        }
    }
}

fn written(out: &Out, done: Done) -> Result<()> {
    report(
        &out.out,
        &format!("{} of {} requests", done.written, done.read),
    );
    Ok(())
}

fn fit(args: &Fit) -> Result<()> {
    let plan = trace_gen::fit::fit(&args.trace, args.block_tokens, args.pooled)?;
    let text = toml::to_string(&plan).context("cannot write TOML")?;
    write_output(&text, Some(&args.out))?;
    report(&args.out, &format!("{} parts", plan.part.len()));
    Ok(())
}

fn cut(args: &CutArgs) -> Result<()> {
    let micros = |seconds: f64| (seconds * 1e6).round() as i64;
    let cut = Cut {
        skip: args.skip,
        limit: args.limit,
        from_us: args.from.map(micros),
        to_us: args.to.map(micros),
        rebase: args.rebase,
    };
    let Files { trace, out } = &args.files;
    written(out, tools::cut(trace, &out.out, &cut)?)
}

fn compare(args: &Compare) -> Result<()> {
    args.output.check()?;
    args.output.emit(&Forms {
        record: &tools::compare(&args.a, &args.b, args.block_tokens)?,
        page: &compare_page,
        markdown: None,
        csv: &compare_csv,
    })
}
