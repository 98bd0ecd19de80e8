//! Makes request traces: imports other formats, generates workloads, and tells what a trace holds.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use trace_gen::inspect::{Quantiles, Summary};
use trace_gen::{Imported, agent, agentx, inspect, ledger, mooncake};

const EXAMPLES: &str = "\
Examples:
  trace-gen import mooncake conversation_trace.jsonl -o mooncake.parquet
  trace-gen import agentx sessions/ -o sessions.parquet --span 4h --seed 0
  trace-gen agent -o agent.parquet --sessions 1000 --seed 1
  trace-gen ledger -o ledger.parquet
  trace-gen inspect agent.parquet --format json

Exit codes: 0 done, 1 failed (nothing is written then), 2 wrong usage.";

/// Make request traces (Parquet): import other formats, generate workloads, inspect what a trace holds.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Convert a trace of another format.
    #[command(subcommand)]
    Import(Import),
    /// Generate sessions of agents: dependent steps, shared system prompts, tool times.
    Agent(AgentArgs),
    /// Generate the ledger of one agent: 20 steps, 97,000 prompt tokens submitted, 7,700 distinct.
    Ledger {
        #[command(flatten)]
        out: Out,
    },
    /// Tell what a trace holds: requests, sessions, tokens, blocks, reuse, lengths and gaps.
    Inspect {
        /// The trace.
        file: PathBuf,
        /// Tokens of a block, for a trace of tokens [default: 16].
        #[arg(long)]
        block_tokens: Option<u32>,
        /// How to print.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

#[derive(Subcommand)]
enum Import {
    /// JSON lines with timestamp (ms), input_length, output_length and hash_ids.
    Mooncake {
        /// The JSON lines; may be packed as .zst.
        input: PathBuf,
        #[command(flatten)]
        out: Out,
        /// Tokens of a block.
        #[arg(long, default_value_t = mooncake::BLOCK_TOKENS)]
        block_tokens: u32,
    },
    /// Nested agent sessions, one JSON object each, in a folder of .json files or the lines of a .jsonl; may be packed as
    /// .zst.
    Agentx {
        /// The folder or file.
        input: PathBuf,
        #[command(flatten)]
        out: Out,
        /// Sessions start uniformly over this time: a number with s, m or h.
        #[arg(long, default_value = "4h", value_parser = parse_span_us)]
        span: u64,
        /// Seed of the sessions' starts.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

#[derive(Args)]
struct AgentArgs {
    #[command(flatten)]
    out: Out,
    /// Sessions of agents.
    #[arg(long, default_value_t = agent::Options::default().sessions)]
    sessions: u32,
    /// Applications, each with a system prompt and tools of its own; the first is the most popular (Zipf).
    #[arg(long, default_value_t = agent::Options::default().apps)]
    apps: u32,
    /// Projects of an application, with notes that all sessions on the project share; likewise popular.
    #[arg(long, default_value_t = agent::Options::default().projects_per_app)]
    projects: u32,
    /// Seconds from the start of one session to the next, on average (Poisson).
    #[arg(long, default_value_t = agent::Options::default().session_gap_seconds)]
    session_gap: f64,
    /// Recurring checks, for every session: of each application always the same prompt.
    #[arg(long, default_value_t = agent::Options::default().checks_per_session)]
    checks: f64,
    /// Single requests that share nothing, for every session.
    #[arg(long, default_value_t = agent::Options::default().oneshots_per_session)]
    oneshots: f64,
    /// Write token ids instead of block ids.
    #[arg(long)]
    tokens: bool,
    /// Tokens of a block, where block ids are written.
    #[arg(long, default_value_t = agent::Options::default().block_tokens)]
    block_tokens: u32,
    /// Seed of everything drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Args)]
struct Out {
    /// The trace to write.
    #[arg(short, long, value_name = "OUT.parquet")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Json,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("error: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Import(import) => run_import(import),
        Command::Agent(args) => run_agent(&args),
        Command::Ledger { out } => {
            let requests = ledger::write(&out.out)?;
            report(&out.out, &format!("{requests} requests"));
            Ok(())
        }
        Command::Inspect {
            file,
            block_tokens,
            format,
        } => print(&inspect::inspect(&file, block_tokens)?, format),
    }
}

fn run_import(import: Import) -> Result<()> {
    let (imported, out) = match import {
        Import::Mooncake {
            input,
            out,
            block_tokens,
        } => (mooncake::import(&input, &out.out, block_tokens)?, out),
        Import::Agentx {
            input,
            out,
            span,
            seed,
        } => {
            let options = agentx::Options {
                span_us: span,
                seed,
            };
            let bar = progress_bar("files");
            let mut progress = |done: usize, of: usize| {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            };
            let imported = agentx::import(&input, &out.out, &options, &mut progress);
            bar.finish_and_clear();
            (imported?, out)
        }
    };
    let Imported {
        requests,
        sessions,
        notes,
    } = imported;
    report(
        &out.out,
        &format!("{requests} requests, {sessions} sessions"),
    );
    for note in notes {
        eprintln!("  {note}");
    }
    Ok(())
}

fn run_agent(args: &AgentArgs) -> Result<()> {
    let options = agent::Options {
        sessions: args.sessions,
        apps: args.apps,
        projects_per_app: args.projects,
        session_gap_seconds: args.session_gap,
        checks_per_session: args.checks,
        oneshots_per_session: args.oneshots,
        tokens: args.tokens,
        block_tokens: args.block_tokens,
        seed: args.seed,
        ..agent::Options::default()
    };
    let requests = agent::write(&args.out.out, &options)?;
    report(&args.out.out, &format!("{requests} requests"));
    Ok(())
}

/// What was written goes to the terminal, not into the output.
fn report(out: &Path, what: &str) {
    eprintln!("{}: {what}", out.display());
}

/// Progress shows on a terminal only.
fn progress_bar(unit: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = format!("{{bar:40}} {{pos}}/{{len}} {unit} {{eta}}");
    let style = ProgressStyle::with_template(&template);
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn parse_span_us(text: &str) -> Result<u64, String> {
    let units = [("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
    let parsed = units.iter().find_map(|(unit, us)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * us)
    });
    match parsed {
        Some(us) if us >= 0.0 && us <= agentx::LONGEST_SPAN_US as f64 => Ok(us as u64),
        _ => Err("expected a number with s, m or h, such as 90s, 30m or 4h".to_owned()),
    }
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
