//! Pure functions from model, GPU and token counts to seconds, FLOPs and bytes.
//!
//! A [`Model`] and a [`Gpu`] are plain descriptions, chosen by name. A [`CostModel`] turns them into the time that
//! prefilling a prompt takes when a prefix of it is cached. Lengths are tokens, times seconds, sizes bytes, GB = 1e9 bytes.

mod cost;
mod error;
mod figures;
mod gpu;
mod model;

pub use cost::{COST_MODELS, CostModel, cost_model};
pub use error::RooflineError;
pub use figures::{Figure, figures};
pub use gpu::Gpu;
pub use model::{LayerGroup, Mixer, Mlp, Model, Precision};
pub use policy_api::{PrefillCost, Work};
