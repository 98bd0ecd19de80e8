//! The flags of `replay`.

use std::path::PathBuf;

use cache::EvictUnit;
use clap::{Parser, Subcommand, ValueEnum};
use cli::capacity::Capacity;
use cli::input::Input;
use cli::output::Output;
use cli::warmup::parse_warmup;
use replay::Warmup;

const EXAMPLES: &str = "\
Examples:
  replay --policy lru --trace agent.parquet
  replay --policy lru,fifo --capacity 20GB,62.5GB,10% --trace agent.parquet
  replay --policy lru,cost-aware --capacity 5% --oracle --trace agent.parquet
  replay --policy marconi,sglang+,vllm+ --model hybrid-7b --trace agent.parquet
  replay --policy every --capacity 1%,10% --oracle --format markdown --trace agent.parquet
  replay --trace a.parquet --trace b.parquet --format json --out runs.json
  replay --trace agent.parquet --warmup 50% --per-request requests.parquet
  replay policies            what there is
  replay policies lru        what one of them does

Exit codes: 0 done, 1 an error (also a policy, model or file that is not there), 2 a flag that cannot be read.";

/// Replay request traces through a prefix cache under eviction and admission policies, and report how much prefill each
/// recovers. Every combination of trace, capacity, policy and admission is a run.
#[derive(Debug, Parser)]
#[command(name = "replay", version, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) replay: Replay,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the policies, or tell all about one.
    Policies {
        /// Name of an eviction or admission policy.
        name: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) input: Input,

    /// Eviction policies: NAME or NAME(KEY=VALUE,...), separated by commas; `every` stands for all there are.
    #[arg(long = "policy", value_name = "LIST", default_value = "lru")]
    pub(crate) policies: Vec<String>,

    /// Admission policies, likewise [default: what the eviction policy comes with, mostly `all`].
    #[arg(long = "admission", value_name = "LIST")]
    pub(crate) admissions: Vec<String>,

    /// Capacities: 62.5GB, 40GiB, 10% of the trace's distinct blocks, or 4096blocks.
    #[arg(
        long = "capacity",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "62.5GB"
    )]
    pub(crate) capacities: Vec<Capacity>,

    /// What goes at one eviction [default: block]. Not for models that resume only from saved states: there a leaf goes whole,
    /// or a state alone.
    #[arg(long, value_name = "UNIT", value_enum)]
    pub(crate) evict_unit: Option<Unit>,

    /// Leading requests that make state but no figures: a count, or a fraction as 0.5 or 50%.
    #[arg(long, value_name = "REQUESTS", value_parser = parse_warmup, default_value = "0")]
    pub(crate) warmup: Warmup,

    /// Hold every run against the oracle: capture and gap closed, by its certified upper bound.
    #[arg(long)]
    pub(crate) oracle: bool,

    /// Read the clock. Without this, the same input gives the same bytes.
    #[arg(long)]
    pub(crate) timings: bool,

    /// Write what happened to each measured request (Parquet). For a single run.
    #[arg(long, value_name = "FILE")]
    pub(crate) per_request: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output<Format>,

    /// Threads [default: all cores].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// Seed of random policies.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

/// Forms of the report.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Table,
    /// For documents: a row a policy, a column a capacity.
    Markdown,
    /// One object, for machines.
    Json,
    /// A line a run.
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// As many blocks from a leaf's tail as room is needed.
    Block,
    /// A whole leaf node.
    Leaf,
    /// A whole leaf node; a split refreshes the tail, as in SGLang.
    LeafSglang,
}

impl From<Unit> for EvictUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Block => Self::Block,
            Unit::Leaf => Self::Leaf,
            Unit::LeafSglang => Self::LeafSglang,
        }
    }
}
