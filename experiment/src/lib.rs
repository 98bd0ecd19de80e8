//! The composition root: which traces, under which prices, in caches of which capacities, and what is asked about them.
//!
//! An [`Experiment`] is one value. The command line fills it from flags; a competition fills it from a round. Its answers are
//! plain records, which `reports` turns into text:
//!
//! | question | answer |
//! |---|---|
//! | [`Experiment::replay`] | what each policy recovers |
//! | [`Experiment::brackets`] | what any policy could recover at most, and what some schedule does |
//! | [`Experiment::curve`] | hits at every capacity, from one pass |
//! | [`Experiment::regret`] | where a policy loses against the best schedule |
//! | [`Experiment::certify`] | what any policy could recover at most, with a proof |
//! | [`Experiment::verify`] | whether such proofs hold |
//!
//! What this crate does not know: flags, terminals, and how records are drawn.

mod capacity;
mod certificates;
mod error;
mod experiment;
mod oracles;
mod pricing;
mod progress;
mod replays;
mod traces;

pub use capacity::{Capacity, NotACapacity};
pub use certificates::CertifiedBound;
pub use error::ExperimentError;
pub use experiment::{Experiment, Replayed, Replays};
pub use oracles::{Brackets, CurvePoints, Regrets};
pub use pricing::Pricing;
pub use progress::{Progress, Silent};
pub use traces::load_traces;
