//! The run record: the one plain form in which measuring and reporting meet.
//!
//! Field names are a contract with everyone who reads the JSON: add, never rename. The version rises when one is renamed;
//! `docs/json-schema.md` has the table of what changed.

use cache::Counters;
use serde::Serialize;

/// Version of the report's form.
pub const SCHEMA: &str = "2";

/// Everything one command found out. `R` is what it says of one run, capacity or point.
#[derive(Clone, Debug, Serialize)]
pub struct Report<R = RunRecord> {
    /// Version of this form.
    pub schema: &'static str,
    /// The traces that were read.
    pub traces: Vec<TraceRecord>,
    /// The answers, in the order asked for: traces outermost.
    pub runs: Vec<R>,
}

impl<R> Report<R> {
    /// A report in today's form.
    pub fn new(traces: Vec<TraceRecord>, runs: Vec<R>) -> Self {
        Self {
            schema: SCHEMA,
            traces,
            runs,
        }
    }
}

/// What was replayed.
#[derive(Clone, Debug, Serialize)]
pub struct TraceRecord {
    /// The file, as it was named.
    pub path: String,
    /// XXH3-64 of the file's bytes, in hexadecimal.
    pub xxh3: String,
    /// `tokens` or `blocks`.
    pub content: &'static str,
    /// Requests.
    pub requests: usize,
    /// Tokens of all prompts.
    pub prompt_tokens: u64,
    /// Block touches: blocks of all paths.
    pub blocks: u64,
    /// Distinct blocks.
    pub distinct_blocks: u32,
    /// Tokens of a block.
    pub block_tokens: u32,
}

/// What a cache of infinite capacity reaches, which no policy can exceed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InfiniteCache {
    /// Hit tokens.
    pub hit_tokens: u64,
    /// Hit tokens over prompt tokens; null without prompt tokens.
    pub token_hit_rate: Option<f64>,
    /// Recovered seconds.
    pub prefill_seconds_recovered: f64,
    /// Recovered over cold seconds; null where nothing costs anything.
    pub prefill_recovered: Option<f64>,
}

/// Time to first token in seconds: the prefill of each request, since requests are replayed one after another. Nulls
/// without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ttft {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Clock readings, which are not reproducible and only there when asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timings {
    /// Wall seconds of the replay, loading not included.
    pub replay_seconds: f64,
    /// Nanoseconds per request.
    pub request_ns: f64,
    /// Block touches per second.
    pub touches_per_second: f64,
}

/// A run against what the oracle certifies that no policy can pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgainstOracle {
    /// Recovered seconds over the oracle's upper bound; null where that is 0.
    pub capture: Option<f64>,
    /// (policy - LRU) / (oracle - LRU), in recovered seconds; null where the oracle does not beat LRU.
    pub gap_closed: Option<f64>,
    /// No policy recovers more seconds.
    pub oracle_seconds_upper: f64,
    /// A schedule that knows the future recovers these, or the best of the runs beside this one.
    pub oracle_seconds_lower: f64,
    /// No policy hits more tokens.
    pub oracle_hit_tokens_upper: u64,
}

/// One trace through one cache under one policy. Sums are over the requests after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunRecord {
    /// Which of the report's traces, from 0.
    pub trace_index: usize,
    /// The trace's file, as it was named.
    pub trace: String,
    /// Eviction policy, with its parameters as written.
    pub policy: String,
    /// Admission policy, with its parameters as written.
    pub admission: String,
    /// Cost model.
    pub cost: String,
    /// The measured efficiencies that it uses; null where the cost model uses none.
    pub calibration: Option<String>,
    /// Model whose prefill is priced.
    pub model: String,
    /// GPU that it runs on.
    pub gpu: String,
    /// `declared` where a policy reads the trace's hints, else `online`. Tracks are scored apart.
    pub track: &'static str,
    /// The policy reads hints and the trace declares none, so it decided by its fallback.
    pub hints_missing: bool,
    /// `block`, `leaf` or `leaf-sglang`; `node` where a model resumes only from saved states.
    pub evict_unit: &'static str,
    /// Seed of everything random.
    pub seed: u64,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Capacity in whole blocks.
    pub capacity_blocks: u64,
    /// Requests that made state but no figures.
    pub warmup_requests: usize,
    /// Requests measured.
    pub requests: usize,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Full blocks of their prompts.
    pub prompt_blocks: u64,
    /// Tokens that were a prefix hit.
    pub hit_tokens: u64,
    /// Hit tokens over prompt tokens; null without prompt tokens.
    pub token_hit_rate: Option<f64>,
    /// Hit blocks over full prompt blocks; null without blocks.
    pub block_hit_rate: Option<f64>,
    /// Seconds of prefill without a cache.
    pub prefill_seconds_cold: f64,
    /// Seconds of prefill that the hits saved.
    pub prefill_seconds_recovered: f64,
    /// Recovered over cold seconds; null where nothing costs anything.
    pub prefill_recovered: Option<f64>,
    /// FLOPs of prefill that the hits saved.
    pub flops_recovered: f64,
    /// The infinite-cache bound.
    pub ceiling: InfiniteCache,
    /// The run against the oracle. Only with an oracle.
    #[serde(flatten)]
    pub against_oracle: Option<AgainstOracle>,
    /// Time to first token.
    pub ttft_seconds: Ttft,
    /// Blocks and states: hit, admitted, evicted and so on.
    #[serde(flatten)]
    pub counters: Counters,
    /// Blocks evicted per block admitted; null where none was admitted.
    pub churn: Option<f64>,
    /// Shared tokens lost below the size of a block; null for block traces.
    pub rounding_lost_tokens: Option<u64>,
    /// Wrong answers of the policy.
    pub policy_faults: u64,
    /// The first of them, in words.
    pub first_fault: Option<String>,
    /// Why the run ended before the trace did, and at which request; its figures then are of what was before.
    pub failure: Option<String>,
    /// Clock readings. Only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<Timings>,
}
