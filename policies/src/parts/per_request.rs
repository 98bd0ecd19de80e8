//! One value per request, looked up by the request that used a node last.

/// A table by request index. A request that was not seen has the value of the one before it.
#[derive(Default)]
pub(crate) struct PerRequest<V> {
    values: Vec<V>,
}

impl<V: Copy + Default> PerRequest<V> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Notes the value of request `index`, which is later than any noted before.
    pub(crate) fn note(&mut self, index: u32, value: V) {
        let before = self.values.last().copied().unwrap_or_default();
        self.values.resize(index as usize, before);
        self.values.push(value);
    }

    pub(crate) fn at(&self, index: u32) -> V {
        self.values.get(index as usize).copied().unwrap_or_default()
    }
}
