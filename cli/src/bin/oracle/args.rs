//! The flags of `oracle`.

use clap::{Parser, Subcommand};
use cli::capacity::Capacity;
use cli::input::Input;
use cli::output::Output;
use cli::warmup::parse_warmup;
use replay::Warmup;

const EXAMPLES: &str = "\
Examples:
  oracle --trace agent.parquet
  oracle --trace agent.parquet --capacity 1%,5%,10% --cost causal --gap 0.5%
  oracle curve --trace agent.parquet --points 20
  oracle regret --trace agent.parquet --policy lru --capacity 5%

Tokens: the upper bound is flat Belady, the lower a replay of Belady on the tree; where they meet, both are the optimum.
Seconds: the upper bound is certified by prices (linear programming duality), the lower is the best replay found.

Memory: the loaded trace (4 bytes a block touch), 8 bytes a distinct block, about 100 bytes a request.

Exit codes: 0 done, 1 an error, 2 a wrong flag.";

/// What knowing the future would have allowed: bounds on the tokens that any policy can hit and the prefill it can
/// recover, each certified or reached by a replay.
#[derive(Debug, Parser)]
#[command(name = "oracle", version, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) brackets: Brackets,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Hits of LRU, second-occurrence LRU and Belady at every capacity, from one pass over the trace.
    Curve(Curve),
    /// Where a policy loses against the best feasible schedule, eviction by eviction.
    Regret(Regret),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Brackets {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) effort: Effort,

    /// Also replay Belady for engines that cannot refuse a running request's blocks.
    #[arg(long)]
    pub(crate) no_bypass: bool,

    /// Read the clock. Without this, the same input gives the same bytes.
    #[arg(long)]
    pub(crate) timings: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// Capacities, and how hard to try at each.
#[derive(Debug, clap::Args)]
pub(crate) struct Effort {
    /// Capacities: 62.5GB, 40GiB, 10% of the trace's distinct blocks, or 4096blocks.
    #[arg(
        long = "capacity",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "62.5GB"
    )]
    pub(crate) capacities: Vec<Capacity>,

    /// Leading requests that make state but no figures: a count, or a fraction as 0.5 or 50%.
    #[arg(long, value_name = "REQUESTS", value_parser = parse_warmup, default_value = "0")]
    pub(crate) warmup: Warmup,

    /// Stop where the bounds in seconds are this close: a share of the upper bound, as 0.5% or 0.005.
    #[arg(long, value_name = "SHARE", value_parser = parse_gap, default_value = "0")]
    pub(crate) gap: f64,

    /// Steps that lower the upper bound in seconds, at most.
    #[arg(long, value_name = "COUNT", default_value_t = oracle::OracleOptions::default().steps)]
    pub(crate) steps: u32,

    /// Threads [default: all cores].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

impl Effort {
    pub(crate) fn options(&self) -> oracle::OracleOptions {
        oracle::OracleOptions {
            gap: self.gap,
            steps: self.steps,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Curve {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Capacities; instead of `--points`.
    #[arg(
        long = "capacity",
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "points"
    )]
    pub(crate) capacities: Vec<Capacity>,

    /// Capacities from 1 block to all distinct blocks, evenly spaced on a logarithmic scale.
    #[arg(long, value_name = "COUNT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) points: u32,

    /// Leading requests that make state but no figures: a count, or a fraction as 0.5 or 50%.
    #[arg(long, value_name = "REQUESTS", value_parser = parse_warmup, default_value = "0")]
    pub(crate) warmup: Warmup,

    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Regret {
    #[command(flatten)]
    pub(crate) input: Input,

    #[command(flatten)]
    pub(crate) effort: Effort,

    /// Eviction policies: NAME or NAME(KEY=VALUE,...), separated by commas.
    #[arg(long = "policy", value_name = "LIST", default_value = "lru")]
    pub(crate) policies: Vec<String>,

    /// Admission policies, likewise [default: what the eviction policy comes with, mostly `all`].
    #[arg(long = "admission", value_name = "LIST")]
    pub(crate) admissions: Vec<String>,

    /// Seed of random policies.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: Output,
}

fn parse_gap(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| {
            format!("`{text}` is no gap: write a share from 0 to 1, or a percentage as 0.5%")
        })
}
