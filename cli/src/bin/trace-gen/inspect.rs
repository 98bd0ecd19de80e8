//! `trace-gen inspect`.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use cli::output::write_output;
use reports::grouped;
use trace_import::inspect::{Quantiles, Summary, inspect};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace.
    file: PathBuf,
    /// Tokens of a block, for a trace of tokens [default: 16].
    #[arg(long)]
    block_tokens: Option<u32>,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    print(&inspect(&args.file, args.block_tokens)?, args.format)
}

fn print(summary: &Summary, format: Format) -> Result<()> {
    let text = match format {
        Format::Json => reports::json(summary),
        Format::Table => table(summary),
    };
    write_output(&text, None)
}

fn table(summary: &Summary) -> String {
    let mut text = format!("{} (xxh3 {})\n", summary.path, summary.xxh3);
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("{name:<28}{value:>16}\n"));
    };
    line("content", summary.content.to_owned());
    line("tokens a block", grouped(u64::from(summary.block_tokens)));
    line("requests", grouped(summary.requests));
    line("sessions", grouped(summary.sessions));
    line(
        "span, hours",
        format!("{:.3}", summary.span_seconds / 3_600.0),
    );
    line("prompt tokens", grouped(summary.prompt_tokens));
    line("output tokens", grouped(summary.output_tokens));
    line("prompt blocks", grouped(summary.prompt_blocks));
    line("block touches", grouped(summary.block_touches));
    line("distinct blocks", grouped(summary.distinct_blocks));
    line(
        "infinite-cache hit tokens",
        grouped(summary.infinite_cache_hit_tokens),
    );
    let rate = summary.infinite_cache_token_hit_rate;
    line(
        "infinite-cache hit rate",
        rate.map_or("-".to_owned(), |rate| format!("{rate:.4}")),
    );
    text.push_str(&format!(
        "\n{:<20}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n",
        "", "min", "p10", "p50", "p90", "p99", "max", "mean"
    ));
    for (name, found, digits) in [
        ("prompt tokens", summary.prompt_tokens_quantiles, 0),
        ("output tokens", summary.output_tokens_quantiles, 0),
        ("gap, s", summary.gap_seconds_quantiles, 3),
        (
            "gap in session, s",
            summary.session_gap_seconds_quantiles,
            3,
        ),
    ] {
        text.push_str(&quantiles(name, found, digits));
    }
    text
}

fn quantiles(name: &str, found: Option<Quantiles>, digits: usize) -> String {
    let Some(q) = found else {
        return format!("{name:<20}{:>10}\n", "-");
    };
    let mut text = format!("{name:<20}{:>10.digits$}", q.min);
    for value in [q.p10, q.p50, q.p90, q.p99, q.max, q.mean] {
        text.push_str(&format!("{value:>11.digits$}"));
    }
    text + "\n"
}
