//! State that a policy keeps of every run, on offer or not.

use policy_api::RunId;

/// A table by run. A run comes in with its first offer, or as the head of a split, and goes when it is evicted whole.
pub(crate) struct RunTable<S> {
    states: Vec<Option<S>>,
}

impl<S: Clone> RunTable<S> {
    pub(crate) fn new() -> Self {
        Self { states: Vec::new() }
    }

    pub(crate) fn get(&self, id: RunId) -> Option<&S> {
        self.states.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: RunId) -> Option<&mut S> {
        self.states.get_mut(id.index())?.as_mut()
    }

    /// The state of a run, made if it has none.
    pub(crate) fn entry(&mut self, id: RunId, make: impl FnOnce() -> S) -> &mut S {
        self.slot(id).get_or_insert_with(make)
    }

    pub(crate) fn put(&mut self, id: RunId, state: S) {
        *self.slot(id) = Some(state);
    }

    pub(crate) fn remove(&mut self, id: RunId) -> Option<S> {
        self.states.get_mut(id.index())?.take()
    }

    /// The head of a split starts with the history of its tail.
    pub(crate) fn split(&mut self, head: RunId, tail: RunId) {
        let state = self.get(tail).cloned();
        *self.slot(head) = state;
    }

    fn slot(&mut self, id: RunId) -> &mut Option<S> {
        if id.index() >= self.states.len() {
            self.states.resize(id.index() + 1, None);
        }
        &mut self.states[id.index()]
    }
}

impl<S: Clone> Default for RunTable<S> {
    fn default() -> Self {
        Self::new()
    }
}
