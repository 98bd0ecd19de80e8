//! The records in which the oracle's answers are reported.
//!
//! Field names are a contract with everyone who reads the JSON: add, never rename.

use serde::{Deserialize, Serialize};

use crate::bracket::{Bracket, Recovered};
use crate::regret::Regret;

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
