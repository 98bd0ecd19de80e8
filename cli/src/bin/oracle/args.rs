//! The flags of `oracle`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use cli::args::{Capacities, Common, Effort, Policies};
use experiment::Capacity;

const EXAMPLES: &str = "\
Examples:
  oracle --trace agent.parquet
  oracle --trace agent.parquet --capacity 1%,5%,10% --cost causal --gap 0.5%
  oracle curve --trace agent.parquet --points 20
  oracle regret --trace agent.parquet --policy lru --capacity 5%
  oracle certify --trace agent.parquet --capacity 5% --out proof.json
  oracle verify proof.json --trace agent.parquet

Tokens: the upper bound is flat Belady, the lower a replay of Belady on the tree; where they meet, both are the optimum.
Seconds: the upper bound is certified by prices (linear programming duality), the lower is the best replay found.

Memory: the loaded trace (4 bytes per block touch), 8 bytes per touch that can hit, 8 per distinct block, about 100 per request.

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
    /// The upper bound in seconds with the prices that prove it, always as JSON: one certificate per trace, cost model and capacity.
    Certify(Certify),
    /// Compute the bounds of certificates anew from the trace and their prices alone, rounding outward. One line each.
    Verify(Verify),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Certify {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) capacities: Capacities,

    #[command(flatten)]
    pub(crate) effort: Effort,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// What `oracle certify` wrote for the same traces and flags.
    pub(crate) certificates: PathBuf,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Brackets {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) capacities: Capacities,

    #[command(flatten)]
    pub(crate) effort: Effort,

    /// Also replay Belady for engines that cannot refuse a running request's blocks.
    #[arg(long)]
    pub(crate) no_bypass: bool,

    /// Read the clock. Without this, the same input gives the same bytes.
    #[arg(long)]
    pub(crate) timings: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Curve {
    #[command(flatten)]
    pub(crate) common: Common,

    /// Capacities, separated by commas; instead of `--points`.
    #[arg(
        long = "capacity",
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "points"
    )]
    pub(crate) capacities: Vec<Capacity>,

    /// Capacities from 1 block to all distinct blocks, evenly spaced on a logarithmic scale.
    #[arg(long, value_name = "COUNT", default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=MOST_POINTS))]
    pub(crate) points: u32,
}

/// More points than a curve can show.
const MOST_POINTS: i64 = 100_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Regret {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) policies: Policies,

    #[command(flatten)]
    pub(crate) capacities: Capacities,

    #[command(flatten)]
    pub(crate) effort: Effort,
}
