//! A set of nodes from which any one can be drawn.

use policy_api::NodeId;

/// Nodes in an order that only the calls decide, with removal in O(1).
#[derive(Default)]
pub(crate) struct IndexedSet {
    members: Vec<NodeId>,
    /// Per node its place among the members.
    places: Vec<Option<u32>>,
}

impl IndexedSet {
    pub(crate) fn insert(&mut self, id: NodeId) {
        if id.index() >= self.places.len() {
            self.places.resize(id.index() + 1, None);
        }
        if self.places[id.index()].is_none() {
            self.places[id.index()] = Some(self.members.len() as u32);
            self.members.push(id);
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        let Some(place) = self.places.get_mut(id.index()).and_then(Option::take) else {
            return;
        };
        self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize) {
            self.places[moved.index()] = Some(place);
        }
    }

    /// The member that a number drawn from all of `u64` falls on.
    pub(crate) fn pick(&self, drawn: u64) -> Option<NodeId> {
        let place = (u128::from(drawn) * self.members.len() as u128) >> 64;
        self.members.get(place as usize).copied()
    }

    /// The member at a place below [`len`](Self::len).
    pub(crate) fn nth(&self, place: usize) -> Option<NodeId> {
        self.members.get(place).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_falls_on_a_member() {
        let mut set = IndexedSet::default();
        assert_eq!(set.pick(7), None);
        for id in 0..4 {
            set.insert(NodeId(id));
        }
        set.remove(NodeId(0));
        set.remove(NodeId(9));
        assert_eq!(set.len(), 3);
        assert_eq!(set.pick(0), Some(NodeId(3)));
        assert_eq!(set.pick(u64::MAX / 2), Some(NodeId(1)));
        assert_eq!(set.pick(u64::MAX), Some(NodeId(2)));
    }
}
