//! What the registry knows of a cost model, and what it makes of one.

use std::fmt;
use std::sync::Arc;

use params::{Param, Params};
use policy_api::PrefillCost;

use crate::calibration::Calibration;
use crate::error::RooflineError;
use crate::gpu::Gpu;
use crate::model::Model;

/// One cost model of the registry.
#[derive(Clone, Copy, Debug)]
pub struct CostEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// The rule.
    pub idea: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether it prices by a calibration.
    pub calibrated: bool,
    /// Builds it for a model on a GPU.
    pub build: BuildCost,
}

/// Builds a cost model.
pub type BuildCost = fn(
    &Model,
    &Gpu,
    &Calibration,
    &Params,
) -> Result<Arc<dyn PrefillCost + Send + Sync>, RooflineError>;

/// What it costs to prefill a prompt of which a prefix is cached, and what that rule is called.
///
/// Costs are pure: the same arguments give the same bits. Time and FLOPs are finite, never negative, never fall as the
/// prompt grows and never rise as its cached prefix grows, so saved time is never negative. A cached prefix longer than
/// the prompt counts as the prompt. Nothing to compute costs nothing.
#[derive(Clone)]
pub struct PricedCost {
    /// The cost model with its parameters, but for those at their defaults. Two that are configured differently have
    /// different names.
    pub name: String,
    /// The calibration whose efficiencies it uses, where it uses any.
    pub calibration: Option<String>,
    /// The cost for a model on a GPU.
    pub cost: Arc<dyn PrefillCost + Send + Sync>,
}

impl AsRef<dyn PrefillCost + Send + Sync> for PricedCost {
    fn as_ref(&self) -> &(dyn PrefillCost + Send + Sync + 'static) {
        self.cost.as_ref()
    }
}

impl fmt::Debug for PricedCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PricedCost")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
