//! What knowing the future would have allowed.
//!
//! Every number here is one of three, and says which: *exact*, a *certified upper bound* that no policy can pass, or a
//! *feasible lower bound* that a schedule reached in a replay.

mod belady;
mod bracket;
mod curve;
mod dual;
mod exact;
mod flat;
mod gains;
mod intervals;
mod next_use;
mod priced;
mod record;
mod regret;
mod schedule;
mod states;

pub use belady::{Belady, Bypass};
pub use bracket::{Bracket, Options, Oracle, Recovered, SecondBounds, TokenBounds, bracket};
pub use curve::Curve;
pub use dual::{Dual, Pfoo, Prices, Stop, pfoo, prefix_dual};
pub use exact::{MOST_BLOCKS, optimum};
pub use flat::flat_belady_blocks;
pub use gains::Gains;
pub use intervals::{Interval, Intervals, NEVER, Time};
pub use next_use::{NextUse, Reading, Use};
pub use record::{CurvePoint, OracleRun, RegretRun, Setting};
pub use regret::{Evictions, EvictionsBy, Loss, Regret};
pub use schedule::{Hits, replay};
pub use states::StateOracle;
