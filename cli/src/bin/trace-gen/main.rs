//! Makes request traces: imports other formats, generates workloads, changes traces, and tells what they hold.

mod export;
mod generate;
mod import;
mod inspect;
mod tools;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use trace_gen::ledger;

const EXAMPLES: &str = "\
Examples:
  trace-gen import mooncake conversation_trace.jsonl -o mooncake.parquet
  trace-gen import agentx sessions/ -o sessions.parquet --span 4h --seed 0
  trace-gen agent -o agent.parquet --sessions 1000 --seed 1
  trace-gen mixture -o mixture.parquet --tenants 5
  trace-gen preset repeat-94 -o agents.parquet
  trace-gen fit sessions.parquet -o fit.toml; trace-gen plan fit.toml -o like-it.parquet
  trace-gen compare sessions.parquet like-it.parquet
  trace-gen sample sessions.parquet -o tenth.parquet --share 0.1
  trace-gen inspect agent.parquet --format json

Exit codes: 0 done, 1 failed (nothing is written then), 2 wrong usage.";

/// Make request traces (Parquet): import other formats, generate workloads, inspect what a trace holds.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    /// Memory that a trace or an input may take, such as 64GB [default: by the size of the file, and at most half of the machine's].
    #[arg(long, global = true, value_name = "SIZE", value_parser = cli::args::parse_memory)]
    memory: Option<u64>,
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
    /// Generate the ledger of one agent: 20 steps, 97,000 prompt tokens submitted, 7,700 distinct.
    Ledger {
        #[command(flatten)]
        out: Out,
    },
    /// Tell what a trace holds: requests, sessions, tokens, blocks, reuse, lengths and gaps.
    Inspect(inspect::Args),
    #[command(flatten)]
    Tool(tools::Tool),
}

#[derive(Args)]
struct Out {
    /// The trace to write.
    #[arg(short, long, value_name = "OUT.parquet")]
    out: PathBuf,
}

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    cli::exit::exit_code(run())
}

/// The commands of the families come from their registry, the others are declared here.
fn run() -> Result<()> {
    let matches = Cli::command()
        .subcommands(generate::commands())
        .get_matches();
    if let Some(&bytes) = matches.get_one::<u64>("memory") {
        trace::MemoryBudget::set_default(bytes);
    }
    if let Some((name, of_family)) = matches.subcommand()
        && let Some(done) = generate::run(name, of_family)
    {
        return done;
    }
    match Cli::from_arg_matches(&matches)
        .unwrap_or_else(|fault| fault.exit())
        .command
    {
        Command::Import(import) => import::run(import),
        Command::Export(args) => export::run(&args),
        Command::Ledger { out } => {
            let requests = ledger::write(&out.out)?;
            report(&out.out, &format!("{requests} requests"));
            Ok(())
        }
        Command::Inspect(args) => inspect::run(&args),
        Command::Tool(tool) => tools::run(tool),
    }
}

/// What was written goes to the terminal, not into the output.
fn report(out: &Path, what: &str) {
    // The work is done: a terminal that is gone does not undo it.
    let text = cli::exit::printable(&format!("{}: {what}", out.display()));
    let _ = writeln!(std::io::stderr(), "{text}");
}
