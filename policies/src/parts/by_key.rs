//! What most policies are: an order of leaves by one key of their facts.

use std::cmp::Reverse;

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, Tick, Victim, WithdrawReason};

/// The order of all ties, and of LRU: the older last use, then the deeper first block, then the older creation.
pub(crate) type LruOrder = (Tick, Reverse<u32>, Tick);

/// The leaf's place in LRU order.
pub(crate) fn lru_order(leaf: &Candidate) -> LruOrder {
    (leaf.last_used, Reverse(leaf.depth_blocks), leaf.created)
}

/// Evicts the leaf with the smallest key. The key may change only when the facts of the leaf do.
pub(crate) struct ByKey<K, F> {
    ranked: Ranked<K>,
    key: F,
}

impl<K: Ord + Copy, F: Fn(&Candidate) -> K> ByKey<K, F> {
    pub(crate) fn new(key: F) -> Self {
        Self {
            ranked: Ranked::new(),
            key,
        }
    }
}

impl<K: Ord + Copy, F: Fn(&Candidate) -> K> EvictionPolicy for ByKey<K, F> {
    fn offer(&mut self, leaf: &Candidate) {
        self.ranked.put(leaf.id, (self.key)(leaf));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.ranked.remove(evicted.id);
    }
}
