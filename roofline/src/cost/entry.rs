//! A cost model that was chosen and built.

use std::fmt;
use std::sync::Arc;

use policy_api::PrefillCost;

/// What it costs to prefill a prompt of which a prefix is cached, and what that rule is called.
///
/// Costs are pure: the same arguments give the same bits. Time and FLOPs are finite, never negative, never fall as the
/// prompt grows and never rise as its cached prefix grows, so saved time is never negative. A cached prefix longer than
/// the prompt counts as the prompt. Nothing to compute costs nothing.
#[derive(Clone)]
pub struct PricedCost {
    /// Name and options of the cost model. Two that price differently have different names.
    pub name: String,
    /// The cost for a model on a GPU.
    pub cost: Arc<dyn PrefillCost + Send + Sync>,
}

impl fmt::Debug for PricedCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PricedCost")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
