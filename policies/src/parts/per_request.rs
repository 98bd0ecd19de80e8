//! One value per request or per event, looked up by the request that used a node last or by when it did.

use policy_api::{RequestIndex, Tick};

/// A table by request. A request that was not seen has the value of the one before it.
#[derive(Default)]
pub(crate) struct PerRequest<V> {
    values: Vec<V>,
}

impl<V: Copy + Default> PerRequest<V> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Notes the value of a request. Requests that overlap may be noted in any order, and again.
    pub(crate) fn note(&mut self, request: RequestIndex, value: V) {
        match self.values.get_mut(request.index()) {
            Some(noted) => *noted = value,
            None => {
                let before = self.values.last().copied().unwrap_or_default();
                self.values.resize(request.index(), before);
                self.values.push(value);
            }
        }
    }

    pub(crate) fn at(&self, request: RequestIndex) -> V {
        let value = self.values.get(request.index());
        value.copied().unwrap_or_default()
    }
}

/// What a clock showed at every event, noted at some of them: it stands still in between.
#[derive(Default)]
pub(crate) struct PerEvent<V> {
    values: Vec<V>,
}

impl<V: Copy + Default> PerEvent<V> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Notes the value at an event, which is later than any noted before.
    pub(crate) fn note(&mut self, now: Tick, value: V) {
        let before = self.values.last().copied().unwrap_or_default();
        self.values.resize(now.index(), before);
        self.values.push(value);
    }

    /// What it showed at an event; for one later than all that were noted, what it showed last.
    pub(crate) fn at(&self, tick: Tick) -> V {
        let value = self.noted(tick).or(self.values.last().copied());
        value.unwrap_or_default()
    }

    /// What it showed at an event; `None` for one later than all that were noted.
    pub(crate) fn noted(&self, tick: Tick) -> Option<V> {
        self.values.get(tick.index()).copied()
    }
}
