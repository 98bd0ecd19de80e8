//! The records in which the oracle's answers are reported.
//!
//! Field names are a contract with everyone who reads the JSON: add, never rename.

use serde::{Deserialize, Serialize};

use crate::bracket::{Bracket, Recovered};

/// What an answer holds for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OracleSetting {
    /// Which of the report's traces, from 0.
    pub trace_index: usize,
    /// The trace's file, as it was named.
    pub trace: String,
    /// Cost model.
    pub cost: String,
    /// The measured efficiencies that it uses; null where the cost model uses none.
    pub calibration: Option<String>,
    /// Model whose prefill is priced.
    pub model: String,
    /// GPU that it runs on.
    pub gpu: String,
    /// Leading requests that filled the cache and were not measured.
    pub warmup_requests: usize,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
}

/// The oracle at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OracleRun {
    /// What it holds for.
    #[serde(flatten)]
    pub setting: OracleSetting,
    /// The bounds.
    #[serde(flatten)]
    pub bracket: Bracket,
    /// Belady where a running request's blocks cannot be refused: feasible for such engines, not a bound. Only when asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_bypass: Option<Recovered>,
    /// Wall seconds of this capacity. Only when asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<f64>,
}

/// Hits of three policies at one capacity, from one pass over the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Which of the report's traces, from 0.
    pub trace_index: usize,
    /// The trace's file, as it was named.
    pub trace: String,
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// Hit tokens of tree-aware LRU.
    pub lru_hit_tokens: u64,
    /// Hit tokens of LRU behind `second-occurrence` admission with unbounded memory.
    pub second_occurrence_lru_hit_tokens: u64,
    /// Hit tokens of flat Belady: no policy exceeds them.
    pub belady_hit_tokens: u64,
    /// Whether some policy hits that many: the trace has no inverted interval.
    pub belady_exact: bool,
}

/// A policy against the best feasible schedule at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegretRun {
    /// What it holds for.
    #[serde(flatten)]
    pub setting: OracleSetting,
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// Eviction policy, with its parameters as written.
    pub policy: String,
    /// Admission policy, with its parameters as written.
    pub admission: String,
    /// Where it loses.
    pub regret: Regret,
}

/// A policy against the best feasible schedule at its capacity.
///
/// What the schedule gains on the policy in hit blocks is `premature + rejected - lucky`, and the same in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regret {
    /// The schedule.
    pub oracle: Recovered,
    /// The policy.
    pub policy: Recovered,
    /// Hits of the schedule that the policy lost by evicting the blocks before.
    pub premature: Loss,
    /// Hits of the schedule that the policy lost by not admitting the blocks.
    pub rejected: Loss,
    /// Hits of the policy that the schedule does without.
    pub lucky: Loss,
    /// All evictions.
    pub evictions: Evictions,
    /// The evictions by each of depth, age, kind and session state.
    pub by: Vec<EvictionsBy>,
}

/// Hits that one side has and the other has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Loss {
    /// Blocks.
    pub blocks: u64,
    /// Seconds of prefill that they save.
    pub seconds: f64,
}

/// Evicted blocks, classed by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Evictions {
    /// Reused while the schedule still holds them.
    pub premature_blocks: u64,
    /// Seconds of prefill lost by that.
    pub premature_seconds: f64,
    /// Reused, but the schedule does not keep them until then either.
    pub unaffordable_blocks: u64,
    /// Never reused: they were kept for nothing.
    pub dead_weight_blocks: u64,
    /// How long: slots of the cache times requests since their last use.
    pub dead_weight_block_requests: u64,
}

/// The evictions of one bucket of one dimension.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvictionsBy {
    /// `depth_blocks`, `age_requests`, `kind` or `session`.
    pub dimension: &'static str,
    /// The bucket, in words.
    pub bucket: String,
    /// Its evictions.
    #[serde(flatten)]
    pub evictions: Evictions,
}
