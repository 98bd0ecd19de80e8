//! The shared ordered set on which a policy is a one-line key.

use alloc::vec::Vec;

use crate::{InOrder, NodeId};

/// Nodes ordered by a key, the smallest first; equal keys by node id.
///
/// Removal is lazy: a removed or replaced entry stays until it comes to the front, or until stale entries outnumber live
/// ones by far. Ever growing keys (LRU, FIFO) cost O(1), others O(log n) amortised.
///
/// ```
/// use policy_api::{Ranked, NodeId};
///
/// let mut ranked = Ranked::new();
/// ranked.put(NodeId(7), 30);
/// ranked.put(NodeId(2), 10);
/// ranked.put(NodeId(2), 40);
/// assert_eq!(ranked.first(), Some(NodeId(7)));
/// ranked.remove(NodeId(7));
/// assert_eq!(ranked.first(), Some(NodeId(2)));
/// ```
#[derive(Debug)]
pub struct Ranked<K> {
    entries: InOrder<(K, NodeId, u64)>,
    /// Per node the stamp of its live entry, 0 for none.
    live: Vec<u64>,
    live_count: usize,
    last_stamp: u64,
}

/// Stale entries are swept out when they outnumber live ones by this factor (and this number).
const STALE_FACTOR: usize = 4;
const STALE_FLOOR: usize = 64;

impl<K: Ord + Copy> Ranked<K> {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            entries: InOrder::new(),
            live: Vec::new(),
            live_count: 0,
            last_stamp: 0,
        }
    }

    /// Puts a node in, or gives it a new key.
    pub fn put(&mut self, id: NodeId, key: K) {
        if id.index() >= self.live.len() {
            self.live.resize(id.index() + 1, 0);
        }
        self.live_count += usize::from(self.live[id.index()] == 0);
        self.last_stamp += 1;
        self.live[id.index()] = self.last_stamp;
        self.entries.push((key, id, self.last_stamp));
        if self.entries.len() > STALE_FLOOR + STALE_FACTOR * self.live_count {
            let live = &self.live;
            self.entries
                .retain(|(_, id, stamp)| live[id.index()] == *stamp);
        }
    }

    /// Takes a node out; does nothing if it is not in.
    pub fn remove(&mut self, id: NodeId) {
        if let Some(stamp) = self.live.get_mut(id.index()).filter(|stamp| **stamp != 0) {
            *stamp = 0;
            self.live_count -= 1;
        }
    }

    /// The node with the smallest key.
    pub fn first(&mut self) -> Option<NodeId> {
        self.first_entry().map(|(_, id)| id)
    }

    /// The smallest key and its node.
    pub fn first_entry(&mut self) -> Option<(K, NodeId)> {
        let live = &self.live;
        self.entries
            .drop_while(|(_, id, stamp)| live[id.index()] != *stamp);
        self.entries.first().map(|(key, id, _)| (*key, *id))
    }

    /// Number of nodes in the set.
    pub fn len(&self) -> usize {
        self.live_count
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.live_count == 0
    }
}

impl<K: Ord + Copy> Default for Ranked<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map that is searched from end to end.
        #[test]
        fn agrees_with_a_plain_map(steps in prop::collection::vec((0u32..20, prop::option::of(0i32..50)), 1..400)) {
            let mut ranked = Ranked::new();
            let mut model = BTreeMap::new();
            for (id, key) in steps {
                match key {
                    Some(key) => {
                        ranked.put(NodeId(id), key);
                        model.insert(NodeId(id), key);
                    }
                    None => {
                        ranked.remove(NodeId(id));
                        model.remove(&NodeId(id));
                    }
                }
                let smallest = model.iter().map(|(id, key)| (*key, *id)).min();
                prop_assert_eq!(ranked.first_entry(), smallest);
                prop_assert_eq!(ranked.len(), model.len());
            }
        }
    }
}
