//! `trace-gen inspect`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use trace_gen::inspect::{Quantiles, Summary, inspect};

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
    match format {
        Format::Json => {
            let json = serde_json::to_string_pretty(summary).context("cannot write JSON")?;
            println!("{json}");
        }
        Format::Table => print_table(summary),
    }
    Ok(())
}

fn print_table(summary: &Summary) {
    let line = |name: &str, value: String| println!("{name:<28}{value:>16}");
    println!("{} (xxh3 {})", summary.path, summary.xxh3);
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
    println!();
    println!(
        "{:<20}{:>10}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "", "min", "p10", "p50", "p90", "p99", "max", "mean"
    );
    print_quantiles("prompt tokens", summary.prompt_tokens_quantiles, 0);
    print_quantiles("output tokens", summary.output_tokens_quantiles, 0);
    print_quantiles("gap, s", summary.gap_seconds_quantiles, 3);
    print_quantiles(
        "gap in session, s",
        summary.session_gap_seconds_quantiles,
        3,
    );
}

fn print_quantiles(name: &str, quantiles: Option<Quantiles>, digits: usize) {
    let Some(q) = quantiles else {
        println!("{name:<20}{:>10}", "-");
        return;
    };
    print!("{name:<20}{:>10.digits$}", q.min);
    for value in [q.p10, q.p50, q.p90, q.p99, q.max, q.mean] {
        print!("{value:>11.digits$}");
    }
    println!();
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
