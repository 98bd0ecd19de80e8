//! What the tests of several crates share: small traces, a flat cost, and facts to change one of.
//!
//! A block is a label here. Its id is given by its labels from the root, as in a loaded trace. A letter of a string is a label
//! too, so `ask("abc")` asks for three blocks.
//!
//! ```
//! use testkit::{SmallTrace, asks};
//!
//! let trace = SmallTrace::new(&asks(&["abc", "abd"]));
//! assert_eq!(trace.path(0)[..2], trace.path(1)[..2]);
//! assert_eq!(trace.requests[1].seen_blocks, 2);
//! ```

mod ask;
mod facts;
#[cfg(feature = "golden")]
pub mod golden;
mod small_trace;

pub use ask::{Ask, Labels, any_asks, ask, asks};
pub use facts::{FlatCost, config, leaf, view};
pub use small_trace::SmallTrace;
