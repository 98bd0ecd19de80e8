//! Traces into traces, and two traces compared.
//!
//! Whatever changes which requests there are or when they come gives them new ids by their place, and lets the references
//! follow; a reference to a request that is gone goes too. A trace states no other coordinates: next uses and reuse are
//! computed when it is loaded, so they are those of the trace as it then is.

mod anonymise;
pub mod compare;
mod cut;
mod merge;
mod rows;
mod shuffle;
mod sketch;

pub use anonymise::anonymise;
pub use compare::{Comparison, Dimension, compare};
pub use cut::{By, Cut, Draw, cut, rescale_time, sample};
pub use merge::{MergeIds, merge};
pub use rows::Done;
pub use shuffle::shuffle_sessions;
