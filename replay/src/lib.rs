//! Drives a loaded trace through a cache under a policy, and makes a run record of it.
//!
//! What this crate does not know: files, printing, the wall clock (but for the timings that a caller asks for), and
//! randomness without a seed. The same trace, policies, parameters and seed give the same record, whatever the number
//! of threads.

mod baseline;
mod metrics;
mod record;
mod run;
mod score_against_oracle;
mod sweep;

pub use baseline::{Baseline, NotAWarmup, Warmup};
pub use record::{
    AgainstOracle, InfiniteCache, Report, RunRecord, SCHEMA, Timings, TraceRecord, Ttft,
};
pub use run::{RunConfig, Scenario};
pub use score_against_oracle::score_against_oracle;
pub use sweep::{Finished, sweep};
