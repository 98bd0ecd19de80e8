//! State that a policy keeps of every node, evictable or not.

use policy_api::NodeId;

/// A table by node. A node gets its state with its first offer, or as the head of a split, and loses it when it is evicted as a
/// whole or merged.
pub(crate) struct NodeTable<S> {
    states: Vec<Option<S>>,
}

impl<S: Clone> NodeTable<S> {
    pub(crate) fn new() -> Self {
        Self { states: Vec::new() }
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<&S> {
        self.states.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: NodeId) -> Option<&mut S> {
        self.states.get_mut(id.index())?.as_mut()
    }

    /// The state of a node, made if it has none.
    pub(crate) fn entry(&mut self, id: NodeId, make: impl FnOnce() -> S) -> &mut S {
        self.slot(id).get_or_insert_with(make)
    }

    pub(crate) fn put(&mut self, id: NodeId, state: S) {
        *self.slot(id) = Some(state);
    }

    pub(crate) fn remove(&mut self, id: NodeId) -> Option<S> {
        self.states.get_mut(id.index())?.take()
    }

    /// The head of a split starts with the state of its tail.
    pub(crate) fn split(&mut self, head: NodeId, tail: NodeId) {
        match self.get(tail).cloned() {
            Some(state) => self.put(head, state),
            // The table of a rule that keeps no states stays empty.
            None => drop(self.remove(head)),
        }
    }

    fn slot(&mut self, id: NodeId) -> &mut Option<S> {
        if id.index() >= self.states.len() {
            self.states.resize(id.index() + 1, None);
        }
        &mut self.states[id.index()]
    }
}

impl<S: Clone> Default for NodeTable<S> {
    fn default() -> Self {
        Self::new()
    }
}
