//! From model, GPU and token counts to seconds, FLOPs and bytes.
//!
//! A [`Model`] and a [`Gpu`] are plain descriptions, chosen by name. A cost model turns them into the time that
//! prefilling a prompt takes when a prefix of it is cached. Lengths are tokens, times seconds, sizes bytes, GB = 1e9
//! bytes.
//!
//! ```
//! use roofline::{Gpu, Model, cost_model};
//!
//! let model = Model::named("course-7b")?;
//! let gpu = Gpu::named("course-h100")?;
//! let priced = cost_model("course", &model, &gpu)?;
//!
//! // A prompt of 8,192 tokens, and the same prompt with 4,096 of them cached.
//! let cold = priced.cost.prefill(8192, 0);
//! let warm = priced.cost.prefill(8192, 4096);
//! assert!((cold.seconds - 0.294).abs() < 0.001);
//! assert!(warm.seconds < cold.seconds);
//!
//! // Parameters belong to the name.
//! let eight = cost_model("roofline(gpus=8)", &model, &gpu)?;
//! assert_eq!(eight.name, "roofline(gpus=8)");
//! # Ok::<(), roofline::RooflineError>(())
//! ```
//!
//! Everything is a pure function, but for [`read_model`], [`read_gpu`] and [`read_calibration`], which read files.

mod calibration;
mod cost;
mod error;
mod fetch;
mod files;
mod gpu;
mod hf;
mod kernel;
mod launches;
mod model;
mod pass;
mod rates;
mod timing;
mod units;

pub use calibration::{Calibration, FitSource};
pub use cost::constant::{AttentionRule, ConstantUtilisation};
pub use cost::entry::{BuildCost, CostEntry, PricedCost};
pub use cost::registry::{COST_MODELS, calibrated_cost_model, cost_model};
pub use cost::roofline::{EngineOptions, RooflineCost};
pub use error::RooflineError;
pub use fetch::{
    FetchCost, Tier, TierCost, break_even_bandwidth, fetch_or_recompute, fetch_seconds, tiers,
};
pub use files::{read_calibration, read_gpu, read_model};
pub use gpu::Gpu;
pub use hf::model_of_config;
pub use kernel::{
    ACTIVATION_BYTES, AllReduce, DecodeAttention, Gemm, HostCopy, Kernel, PrefillAttention, Stream,
};
pub use launches::ModelPart;
pub use model::{LatentAttention, LayerGroup, Mixer, Mlp, Model, Precision, PrefixMemory};
pub use pass::{Deployment, LaunchCosts, PartCost, PassCost, PrefillChunk};
pub use policy_api::{PrefillCost, StateBytes, Work};
pub use rates::decode::DecodeRates;
pub use rates::engine::{EnginePasses, EngineRates};
pub use rates::gemm::GemmRates;
pub use rates::prefill::PrefillRates;
pub use rates::transfer::{AllReduceRates, HostRates, StreamRates};
pub use timing::KernelTiming;
