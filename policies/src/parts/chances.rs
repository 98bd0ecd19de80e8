//! First in, first out, with second chances: the queue of CLOCK, and the main queue of S3-FIFO.

use policy_api::{NodeId, Ranked};

use crate::parts::node_table::NodeTable;

/// Nodes in the order they came. A node that was used since it came, or since it was passed, is passed over and goes to the
/// back with one chance less; the first without a chance is the one to evict.
///
/// The turn of the queue is taken when something is evicted, not when the first is asked for, so that asking changes
/// nothing. A node that is not evictable keeps its place and its chances.
pub(crate) struct Chances {
    most: u32,
    nodes: NodeTable<State>,
    /// Nodes evictable by place, one set for each number of chances.
    levels: Vec<Ranked<u64>>,
    places: u64,
}

#[derive(Clone, Copy)]
struct State {
    place: u64,
    chances: u32,
    /// Uses of the node that were turned into chances already.
    uses: u32,
    evictable: bool,
}

impl Chances {
    /// With at most so many chances a node.
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            nodes: NodeTable::new(),
            levels: (0..=most).map(|_| Ranked::new()).collect(),
            places: 0,
        }
    }

    pub(crate) fn contains(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some()
    }

    /// Puts a node at the back without a chance, if it is not in.
    pub(crate) fn join(&mut self, id: NodeId, uses: u32) {
        let places = &mut self.places;
        self.nodes.entry(id, || {
            *places += 1;
            State {
                place: *places,
                chances: 0,
                uses,
                evictable: false,
            }
        });
    }

    /// Offers a node that is in. A use since the last offer is a chance.
    pub(crate) fn offer(&mut self, id: NodeId, uses: u32) {
        let most = self.most;
        self.withdraw(id);
        if let Some(state) = self.nodes.get_mut(id) {
            state.chances = (state.chances + uses.saturating_sub(state.uses)).min(most);
            state.uses = uses;
            state.evictable = true;
            self.levels[state.chances as usize].put(id, state.place);
        }
    }

    pub(crate) fn withdraw(&mut self, id: NodeId) {
        if let Some(state) = self.nodes.get_mut(id) {
            state.evictable = false;
            self.levels[state.chances as usize].remove(id);
        }
    }

    /// The node to evict: the first of those with the fewest chances.
    pub(crate) fn first(&mut self) -> Option<NodeId> {
        self.levels.iter_mut().find_map(Ranked::first)
    }

    /// Something of the node was evicted: takes the turn that led to it.
    pub(crate) fn evicted(&mut self, id: NodeId, whole: bool) {
        let Some(&State { place, chances, .. }) = self.nodes.get(id) else {
            return;
        };
        self.withdraw(id);
        for passed in self.passed(place, chances) {
            self.pass(passed, place, chances);
        }
        if whole {
            self.nodes.remove(id);
        } else if let Some(state) = self.nodes.get_mut(id) {
            state.chances = 0;
        }
    }

    pub(crate) fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.split(head, tail);
        if let Some(state) = self.nodes.get_mut(head) {
            state.evictable = false;
        }
    }

    /// Forgets a node, without a turn.
    pub(crate) fn remove(&mut self, id: NodeId) {
        self.withdraw(id);
        self.nodes.remove(id);
    }

    /// The nodes that the turn passes, by place: those before the victim, and all of them if even the victim had a chance.
    fn passed(&mut self, place: u64, chances: u32) -> Vec<NodeId> {
        let mut passed = Vec::new();
        for level in &mut self.levels[1..] {
            while let Some((at, id)) = level.first_entry()
                && (at < place || chances > 0)
            {
                level.remove(id);
                passed.push((at, id));
            }
        }
        passed.sort_unstable();
        passed.into_iter().map(|(_, id)| id).collect()
    }

    /// Takes the chances that the turn costs a node. One before the victim is passed once more than one behind it.
    fn pass(&mut self, id: NodeId, victim_place: u64, victim_chances: u32) {
        if let Some(state) = self.nodes.get_mut(id) {
            state.chances -= victim_chances;
            if state.place < victim_place {
                state.chances -= 1;
                self.places += 1;
                state.place = self.places;
            }
            self.levels[state.chances as usize].put(id, state.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// The queue as one would write it down, with the turn taken by hand.
    #[derive(Default)]
    struct Naive {
        queue: VecDeque<(u32, u32)>,
    }

    impl Naive {
        fn evict(&mut self) -> Option<u32> {
            while let Some((id, chances)) = self.queue.pop_front() {
                if chances == 0 {
                    return Some(id);
                }
                self.queue.push_back((id, chances - 1));
            }
            None
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_queue_that_is_turned_by_hand(
            steps in prop::collection::vec(prop::option::weighted(0.7, 0u32..8), 1..200),
            most in 1u32..4,
        ) {
            let mut chances = Chances::new(most);
            let mut naive = Naive::default();
            let mut uses = [0; 8];
            for step in steps {
                if let Some(id) = step {
                    uses[id as usize] += 1;
                    chances.join(NodeId(id), uses[id as usize]);
                    chances.offer(NodeId(id), uses[id as usize]);
                    match naive.queue.iter_mut().find(|(other, _)| *other == id) {
                        Some((_, chances)) => *chances = (*chances + 1).min(most),
                        None => naive.queue.push_back((id, 0)),
                    }
                } else {
                    let first = chances.first();
                    prop_assert_eq!(chances.first(), first);
                    prop_assert_eq!(first.map(|id| id.0), naive.evict());
                    if let Some(first) = first {
                        chances.evicted(first, true);
                    }
                }
            }
        }
    }
}
