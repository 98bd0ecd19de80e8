//! The one grammar in which people write names, parameters, lists and quantities.
//!
//! - `name` or `name(key=value,key=value)`: [`Call`], checked against declared [`Param`]s by [`Params`].
//! - Lists: [`split_list`] splits at commas outside parentheses.
//! - Quantities with units: [`duration_us`] (`90s`, `5m`), [`size_bytes`] (`62.5GB`, `40GiB`), [`share`] (`0.5`, `50%`).
//! - Names out of a registry: [`find`], which ignores case and suggests the most similar name.
//!
//! What this crate does not know: what any name or parameter means.
//!
//! ```
//! use params::{Call, Domain, Param, Params};
//!
//! const PARAMS: &[Param] = &[Param {
//!     name: "half-life",
//!     default: "10m",
//!     domain: Domain::Duration,
//!     help: "time after which a use counts half",
//! }];
//! let call = Call::parse("faded(half-life=90s)")?;
//! assert_eq!(call.name, "faded");
//! let params = Params::parse(PARAMS, call.arguments).expect("declared");
//! assert_eq!(params.duration_us("half-life"), 90_000_000);
//! # Ok::<(), params::Malformed>(())
//! ```

mod call;
mod names;
mod parameters;
mod units;

pub use call::{Call, Malformed, split_list};
pub use names::{UnknownName, find};
pub use parameters::{Domain, Param, ParamError, Params};
pub use units::{duration_us, share, size_bytes};
