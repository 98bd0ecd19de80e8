//! Makes request traces: imports other formats, generates workloads, and tells what a trace holds.

mod export;
mod import;
mod inspect;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use trace_gen::{agent, ledger};

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
    Import(import::Import),
    /// Write a trace in another format.
    Export(export::Args),
    /// Generate sessions of agents: dependent steps, shared system prompts, tool times.
    Agent(AgentArgs),
    /// Generate the ledger of one agent: 20 steps, 97,000 prompt tokens submitted, 7,700 distinct.
    Ledger {
        #[command(flatten)]
        out: Out,
    },
    /// Tell what a trace holds: requests, sessions, tokens, blocks, reuse, lengths and gaps.
    Inspect(inspect::Args),
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

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
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
        Command::Import(import) => import::run(import),
        Command::Export(args) => export::run(&args),
        Command::Agent(args) => run_agent(&args),
        Command::Ledger { out } => {
            let requests = ledger::write(&out.out)?;
            report(&out.out, &format!("{requests} requests"));
            Ok(())
        }
        Command::Inspect(args) => inspect::run(&args),
    }
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
