//! Pure functions from model, GPU and token counts to seconds, FLOPs and bytes.
//!
//! A [`Model`] and a [`Gpu`] are plain descriptions, chosen by name. A [`CostModel`] turns them into the time that
//! prefilling a prompt takes when a prefix of it is cached. Lengths are tokens, times seconds, sizes bytes, GB = 1e9 bytes.

mod calibrate;
mod calibration;
mod cost;
mod error;
mod fetch;
mod figures;
mod fit;
mod geometry;
mod gpu;
mod hf;
mod kernel;
mod measure;
mod model;
mod observed;
mod pass;
mod plan;
mod rates;
mod roofline_cost;
mod validate;

pub use calibrate::calibrate;
pub use calibration::{Calibration, EngineRates, Provenance};
pub use cost::{COST_MODELS, CostModel, cost_model};
pub use error::RooflineError;
pub use fetch::{FetchCost, Tier, TierCost, fetch_or_recompute, tiers};
pub use figures::{Figure, figures};
pub use geometry::{Geometry, read_catalogue};
pub use gpu::Gpu;
pub use kernel::{AllReduce, DecodeAttention, Gemm, HostCopy, Kernel, PrefillAttention, Stream};
pub use measure::{Measurement, Observed, read_measurements};
pub use model::{LayerGroup, Mixer, Mlp, Model, Precision, PrefixMemory};
pub use observed::Split;
pub use pass::{PartCost, PassCost, Setting};
pub use plan::{Part, Step};
pub use policy_api::{PrefillCost, StateBytes, Work};
pub use rates::{
    AllReduceRates, DecodeRates, GemmRates, HostRates, PrefillRates, Roofline, StreamRates,
};
pub use roofline_cost::RooflineCost;
pub use validate::{ErrorRow, Errors, validate};
