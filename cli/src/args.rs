//! Flags that several commands share.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use experiment::{Capacity, Experiment, ExperimentError, Pricing, Progress, load_traces};
use oracle::OracleOptions;
use params::split_list;
use replay::Warmup;

use crate::output::Output;
use crate::progress::TerminalProgress;

/// Flags that name traces and prices, and the requests that are not measured.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// Trace (Parquet); may be given several times.
    #[arg(long = "trace", value_name = "FILE", required = true)]
    pub traces: Vec<PathBuf>,

    /// Tokens per block. For traces of tokens [default: 16]; traces of blocks bring their own.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub block_tokens: Option<u32>,

    /// Model whose prefill is priced and whose memory fills the cache: a name (`roofline models` lists them), or the path of a
    /// Hugging Face config.json.
    #[arg(long, value_name = "NAME", default_value = "course-7b")]
    pub model: String,

    /// GPU that it runs on: a name (`roofline gpus` lists them), or the path of a TOML file.
    #[arg(long, value_name = "NAME", default_value = "course-h100")]
    pub gpu: String,

    /// Measured efficiencies for `--cost roofline` [default: the GPU's own]: a name (`roofline calibrations` lists them), or the
    /// path of a file that `roofline fit` wrote.
    #[arg(long, value_name = "NAME")]
    pub calibration: Option<String>,

    /// Cost models, separated by commas (`roofline costs` lists them).
    #[arg(long, value_name = "LIST", default_value = "course")]
    pub cost: String,

    /// Leading requests that fill the cache and are not measured: a count, or a share as 0.5 or 50%.
    #[arg(long, value_name = "REQUESTS", default_value = "0")]
    pub warmup: Warmup,

    /// Memory that loading may take, such as 64GB [default: by the size of the file, and at most half of the machine's].
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
}

/// A size of memory on the command line.
///
/// # Errors
/// What a size looks like.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    params::size_bytes(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("`{text}` is no size: write it as 64GB or 40GiB"))
}

impl Input {
    /// One pricing per cost model.
    ///
    /// # Errors
    /// If there is none of a name; the error lists the names.
    pub fn prices(&self) -> Result<Vec<Pricing>> {
        let costs = split_list(&self.cost);
        if costs.is_empty() {
            bail!("--cost names no cost model");
        }
        let price = |cost: &String| {
            Ok(Pricing::calibrated(
                &self.model,
                &self.gpu,
                cost,
                self.calibration.as_deref(),
            )?)
        };
        costs.iter().map(price).collect()
    }
}

/// What every command about an experiment is told.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Traces and prices.
    #[command(flatten)]
    pub input: Input,

    /// Form and place of the output.
    #[command(flatten)]
    pub output: Output,

    /// How many threads work.
    #[command(flatten)]
    pub threads: Threads,
}

impl Common {
    /// Asks one question of the experiment at these capacities. What can be checked without the traces is checked before they
    /// are loaded.
    ///
    /// # Errors
    /// If the output cannot be written, a name is not known, a file is no valid trace, or the question has no answer.
    pub fn ask<R>(
        &self,
        capacities: &[Capacity],
        question: impl FnOnce(&Experiment, &dyn Progress) -> Result<R, ExperimentError>,
    ) -> Result<R> {
        self.output.check()?;
        let prices = self.input.prices()?;
        self.threads.start()?;
        if let Some(bytes) = self.input.memory {
            trace::MemoryBudget::set_default(bytes);
        }
        let progress = TerminalProgress::default();
        let experiment = Experiment {
            traces: load_traces(&self.input.traces, self.input.block_tokens, &progress)?,
            prices,
            capacities: capacities.to_vec(),
            warmup: self.input.warmup,
        };
        let answer = question(&experiment, &progress)?;
        progress.finish();
        Ok(answer)
    }
}

/// Capacities, with the default of the reference GPU.
#[derive(Debug, clap::Args)]
pub struct Capacities {
    /// Capacities, separated by commas: 62.5GB, 40GiB, 10% of the trace's distinct blocks, or 4096blocks.
    #[arg(
        long = "capacity",
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "62.5GB"
    )]
    pub capacities: Vec<Capacity>,
}

/// How many threads work.
#[derive(Debug, clap::Args)]
pub struct Threads {
    /// Threads [default: all cores].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

impl Threads {
    /// From now on this many threads work.
    ///
    /// # Errors
    /// If the system does not give them.
    pub fn start(&self) -> Result<()> {
        let Some(threads) = self.threads else {
            return Ok(());
        };
        rayon::ThreadPoolBuilder::new()
            .num_threads(usize::from(threads))
            .build_global()
            .with_context(|| format!("cannot start {threads} threads"))
    }
}

/// Policies, and the seed of those that draw.
#[derive(Debug, clap::Args)]
pub struct Policies {
    /// Eviction policies: NAME or NAME(KEY=VALUE,...), separated by commas; `every` stands for all there are.
    #[arg(long = "policy", value_name = "LIST", default_value = "lru")]
    pub policies: Vec<String>,

    /// Admission policies, likewise [default: what the eviction policy comes with, mostly `all`].
    #[arg(long = "admission", value_name = "LIST")]
    pub admissions: Vec<String>,

    /// Seed of random policies.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
}

/// How hard the oracle tries.
#[derive(Debug, clap::Args)]
pub struct Effort {
    /// Stop where the oracle's bounds in seconds are this close: a share of the upper bound, as 0.5% or 0.005.
    #[arg(long, value_name = "SHARE", value_parser = parse_gap, default_value = "0")]
    pub gap: f64,

    /// Steps that lower the oracle's upper bound in seconds, at most.
    #[arg(long, value_name = "COUNT", default_value_t = OracleOptions::default().steps)]
    pub steps: u32,
}

impl Effort {
    /// The same, as the oracle takes it.
    pub fn options(&self) -> OracleOptions {
        OracleOptions {
            gap: self.gap,
            steps: self.steps,
        }
    }
}

fn parse_gap(text: &str) -> Result<f64, String> {
    params::share(text).ok_or_else(|| {
        format!("`{text}` is no gap: write a share from 0 to 1, or a percentage as 0.5%")
    })
}
