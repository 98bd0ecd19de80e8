//! What knowing the future would have allowed.
//!
//! Every number here is one of three, and says which: *exact*, a *certified upper bound* that no policy can exceed, or a
//! *feasible lower bound* that a schedule reached in a replay.
//!
//! ```
//! use oracle::{BlockMemory, Oracle, OracleOptions};
//! use roofline::{Gpu, Model, cost_model};
//! use trace::{Provenance, Request, WorkloadBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Four prompts of two blocks of 16 tokens each, the last two prompts being the first two again.
//! let mut trace = WorkloadBuilder::new(16);
//! for path in [[1, 2], [3, 4], [1, 2], [3, 4]] {
//!     let request = Request { prompt_tokens: 33, prompt_blocks: 2, ..Request::default() };
//!     trace.push(request, &path)?;
//! }
//! let workload = trace.finish(Provenance::default());
//!
//! let cost = cost_model("course", &Model::named("course-7b")?, &Gpu::named("course-h100")?)?;
//! let memory = BlockMemory { block_bytes: 1000, state: None };
//! let oracle = Oracle::new(&workload, cost.as_ref(), memory, 0);
//!
//! // Room for three blocks: one prompt is reused whole, and the first block of the other.
//! let bracket = oracle.bracket(3000, &OracleOptions::default());
//! assert!(bracket.tokens.exact);
//! assert_eq!(bracket.tokens.upper, 3 * 16);
//! assert!(bracket.seconds.lower <= bracket.seconds.upper);
//! # Ok(())
//! # }
//! ```
//!
//! # Terms
//!
//! - Request `i` *touches* every block of its path. A touch is *gainful* if the block can count as a hit there: it belongs to
//!   the first `⌊(S-1)/b⌋` blocks of a prompt of `S` tokens in blocks of `b`. Output blocks, and the last block of a prompt that
//!   ends with it, are touched *without gain*.
//! - An *interval* `[a, c)` of a block lies between two consecutive touches of it. A policy that hits the block at `c` held it
//!   through the interval, in one *slot*: the room that one block takes.
//! - A *gap* lies between two consecutive requests. A cache of `C` blocks has `C` slots in every gap.
//! - A gainful interval is *inverted* if an ancestor of its block is touched without gain strictly inside it. Only then can
//!   the rule that a parent outlives its child cost hits ([`Bracket::inversions`] counts them).
//! - The *next use* of a block is its next touch if that is gainful, else never: a touch without gain brings the block in
//!   again for free, so that holding it until then is waste.
//! - *Seconds saved* by a hit of `D` blocks: what the prompt costs without any hit, less what it costs after that one.

mod belady;
mod best;
mod bracket;
mod certificate;
mod curve;
mod descent;
mod dual;
mod dual_search;
mod flat;
mod intervals;
mod next_use;
mod oracle;
mod per_token;
mod prefix_program;
mod priced;
mod priced_trace;
mod prices;
mod primal_dual;
mod record;
mod regret;
mod schedule;
mod states;

#[cfg(test)]
mod exact;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

pub use bracket::{
    BlockMemory, Bracket, LEAST_GAP_SHARE, OracleOptions, Recovered, SecondBounds, TokenBounds,
};
pub use certificate::{Certificate, CertificateError, SharePrices, verify};
pub use curve::HitCurves;
pub use oracle::Oracle;
pub use record::{
    CurvePoint, Evictions, EvictionsBy, Loss, OracleRun, OracleSetting, Regret, RegretRun,
};
