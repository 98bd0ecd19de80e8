//! Priced Belady: evicts the leaf whose next hit is worth least after rent.

use std::cmp::Reverse;

use policy_api::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Score, Victim,
    WithdrawReason,
};

use crate::belady::{put_at, whole_path};
use crate::intervals::{NEVER, Time};
use crate::next_use::NextUse;
use crate::prefix_program::GainTrend;
use crate::prices::Prices;

/// How the blocks of a path with equal next use are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Each by its own gain.
    ByBlock,
    /// All by their average gain.
    ByStretch,
}

/// Evicts the leaf with the smallest gain of its next use less the prices until then.
///
/// The prices up to now are the same for all leaves, so the key is the gain less the sum of all prices before the next
/// use, and never changes while a leaf is not touched.
pub(crate) struct PricedBelady<'a, S> {
    next_use: &'a NextUse,
    prices: &'a Prices,
    saved: &'a S,
    cut: Cut,
    trend: GainTrend,
    ranked: Ranked<(Score, Reverse<u32>)>,
    tail_blocks: Vec<u32>,
}

impl<'a, S: Fn(Time, u32) -> f64> PricedBelady<'a, S> {
    pub(crate) fn new(
        next_use: &'a NextUse,
        prices: &'a Prices,
        saved: &'a S,
        cut: Cut,
        trend: GainTrend,
    ) -> Self {
        Self {
            next_use,
            prices,
            saved,
            cut,
            trend,
            ranked: Ranked::new(),
            tail_blocks: Vec::new(),
        }
    }

    /// The mean gain of the blocks from `first` to `tail` at their next use.
    fn gain(&self, time: Time, first: u32, tail: u32) -> f64 {
        let gain = (self.saved)(time, tail + 1) - (self.saved)(time, first);
        gain / f64::from(tail + 1 - first)
    }
}

impl<S: Fn(Time, u32) -> f64> EvictionPolicy for PricedBelady<'_, S> {
    fn offer(&mut self, leaf: &Candidate) {
        let tail = leaf.depth_blocks + leaf.blocks - 1;
        let next = self.next_use.after(leaf.last_request.0, tail);
        let key = match (next.time, self.cut) {
            (NEVER, _) => f64::NEG_INFINITY,
            (time, Cut::ByStretch) => {
                self.gain(time, next.first_block, tail) - self.prices.before(time)
            }
            (time, Cut::ByBlock) => self.gain(time, tail, tail) - self.prices.before(time),
        };
        // Where gains rise with depth, the next block up ranks before the one just evicted, so the stretch is evicted whole.
        let one_by_one =
            next.time != NEVER && self.cut == Cut::ByBlock && self.trend == GainTrend::Any;
        let first = if one_by_one {
            tail
        } else {
            next.first_block.max(leaf.depth_blocks)
        };
        put_at(&mut self.tail_blocks, leaf.id, tail + 1 - first);
        self.ranked.put(leaf.id, (Score(key), Reverse(tail)));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let id = self.ranked.first()?;
        let blocks = self.tail_blocks[id.index()];
        Some(Victim { id, blocks })
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.ranked.remove(evicted.id);
    }
}

impl<S: Fn(Time, u32) -> f64> AdmissionPolicy for PricedBelady<'_, S> {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        whole_path(request)
    }
}
