//! Belady on the tree: evicts the leaf block with the latest next use, blocks that are never used again before all others.
//!
//! With no inverted interval and the gain-or-never reading this has the most hits of all policies, at every capacity. A hit
//! is a unit interval, and dropping the interval that ends last packs the most of them. A touch of a child is a touch of its
//! parent, and gainful for the parent if it is for the child. So the next use of a parent is never later than that of its
//! child, and the rule that only leaves are evicted never binds.

use std::cmp::Reverse;

use policy_api::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason,
};

use crate::intervals::Time;
use crate::next_use::NextUse;

/// Whether a request's own blocks may be evicted like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// They may: the oracle does not admit what it would not keep.
    Allowed,
    /// They are evicted last, only when nothing else is left: engines hold the blocks of a running request.
    Denied,
}

/// Belady as a policy. Its future enters by the constructor; the cache sees a policy like any other.
pub(crate) struct Belady<'a> {
    next_use: &'a NextUse,
    bypass: Bypass,
    ranked: Ranked<(bool, Reverse<Time>, Reverse<u32>)>,
    /// By node id: how many blocks of its tail share their next use.
    tail_blocks: Vec<u32>,
    now: Time,
    /// The evictable leaf that the present request touched, where it must be evicted last.
    own: Option<Candidate>,
}

impl<'a> Belady<'a> {
    /// Belady with one reading of the next use.
    pub(crate) fn new(next_use: &'a NextUse, bypass: Bypass) -> Self {
        Self {
            next_use,
            bypass,
            ranked: Ranked::new(),
            tail_blocks: Vec::new(),
            now: 0,
            own: None,
        }
    }

    fn rank(&mut self, leaf: &Candidate, own: bool) {
        let tail = leaf.depth_blocks + leaf.blocks - 1;
        let next = self.next_use.after(leaf.last_request.0, tail);
        let first = next.first_block.max(leaf.depth_blocks);
        put_at(&mut self.tail_blocks, leaf.id, tail + 1 - first);
        self.ranked
            .put(leaf.id, (own, Reverse(next.time), Reverse(tail)));
    }
}

impl EvictionPolicy for Belady<'_> {
    fn offer(&mut self, leaf: &Candidate) {
        let own = self.bypass == Bypass::Denied && leaf.last_request.0 == self.now;
        self.rank(leaf, own);
        if own {
            self.own = Some(*leaf);
        }
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let id = self.ranked.first()?;
        let blocks = self.tail_blocks[id.index()];
        Some(Victim { id, blocks })
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.ranked.remove(evicted.id);
        if whole && self.own.is_some_and(|own| own.id == evicted.id) {
            self.own = None;
        }
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.now = request.index.0;
        if let Some(leaf) = self.own.take() {
            self.rank(&leaf, false);
        }
    }
}

impl AdmissionPolicy for Belady<'_> {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        whole_path(request)
    }
}

/// What is not admitted cannot be kept: an oracle admits everything, and evicts at once what it does not keep.
pub(crate) fn whole_path(request: &RequestView<'_>) -> u32 {
    u32::try_from(request.path.len()).expect("a path's length fits u32")
}

/// Sets an entry of a table by node id.
pub(crate) fn put_at<T: Copy + Default>(table: &mut Vec<T>, id: NodeId, value: T) {
    if id.index() >= table.len() {
        table.resize(id.index() + 1, T::default());
    }
    table[id.index()] = value;
}
