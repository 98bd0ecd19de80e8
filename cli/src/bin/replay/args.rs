//! The flags of `replay`.

use std::path::PathBuf;

use cache::EvictUnit;
use clap::{Parser, Subcommand, ValueEnum};
use cli::args::{Capacities, Common, Effort, Policies};

const EXAMPLES: &str = "\
Examples:
  replay --policy lru --trace agent.parquet
  replay --policy lru,fifo --capacity 20GB,62.5GB,10% --trace agent.parquet
  replay --policy lru,cost-aware --capacity 5% --oracle --trace agent.parquet
  replay --policy marconi,sglang+,vllm+ --model hybrid-7b --trace agent.parquet
  replay --policy every --capacity 1%,10% --oracle --format markdown --trace agent.parquet
  replay --policy lru,cost-aware --cost course,roofline --trace agent.parquet
  replay --trace a.parquet --trace b.parquet --format json --out runs.json
  replay --trace agent.parquet --warmup 50% --per-request requests.parquet
  replay policies            what there is
  replay policies lru        what one of them does

Exit codes: 0 done, 1 an error (also a policy, model or file that is not there), 2 a flag that cannot be read.";

/// Replay request traces through a prefix cache under eviction and admission policies, and report how much prefill each
/// recovers. Every combination of trace, cost model, capacity, policy and admission is a run.
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
    pub(crate) common: Common,

    #[command(flatten)]
    pub(crate) policies: Policies,

    #[command(flatten)]
    pub(crate) capacities: Capacities,

    /// What is evicted at a time [default: block]. Not for models that resume only from saved states: there a leaf is evicted
    /// whole, or a state alone.
    #[arg(long, value_name = "UNIT", value_enum)]
    pub(crate) evict_unit: Option<Unit>,

    /// Score every run against the oracle: capture = saved seconds / its upper bound; gap closed = (policy - LRU) / (bound - LRU).
    #[arg(long)]
    pub(crate) oracle: bool,

    #[command(flatten)]
    pub(crate) effort: Effort,

    /// Read the clock. Without this, the same input gives the same bytes.
    #[arg(long)]
    pub(crate) timings: bool,

    /// Write what happened to each measured request (Parquet). For a single run.
    #[arg(long, value_name = "FILE")]
    pub(crate) per_request: Option<PathBuf>,
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
