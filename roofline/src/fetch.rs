//! Fetching a cached prefix from where it lies, or computing it again.

use serde::Serialize;

use crate::cost::entry::PricedCost;
use crate::gpu::Gpu;
use crate::model::Model;

/// A place that KV can be fetched from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tier {
    /// Its name.
    pub name: String,
    /// Bytes/s from there.
    pub bandwidth: f64,
}

/// Fetching from a tier against recomputing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierCost {
    /// The tier.
    pub tier: Tier,
    /// Seconds to fetch the prefix.
    pub fetch_seconds: f64,
    /// Fetching takes less time than recomputing.
    pub fetch: bool,
    /// How many times faster fetching is than recomputing.
    pub speedup: f64,
}

/// What a prefix of some length weighs and costs, and where fetching it pays.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FetchCost {
    /// The cost model.
    pub cost: String,
    /// The calibration whose efficiencies it uses, where it uses any.
    pub calibration: Option<String>,
    /// Tokens of the prefix.
    pub tokens: u64,
    /// Bytes of its KV (and of one recurrent state, where the model has one).
    pub kv_bytes: f64,
    /// Seconds to compute it again.
    pub recompute_seconds: f64,
    /// Bytes/s at which fetching takes as long as recomputing.
    pub break_even_bandwidth: f64,
    /// By tier.
    pub tiers: Vec<TierCost>,
}

/// The tiers of a node with that GPU: device memory, the other GPUs, host memory, one NVMe drive, and the network.
///
/// Device, peer and host bandwidths are the GPU's; a PCIe 4 x4 drive reads 7 GB/s, and the course's networks are 400
/// and 100 Gbit/s.
pub fn tiers(gpu: &Gpu) -> Vec<Tier> {
    let tier = |name: &str, bandwidth| Tier {
        name: name.to_owned(),
        bandwidth,
    };
    let mut tiers = vec![tier("device memory", gpu.memory_bandwidth)];
    tiers.extend(gpu.interconnect_bandwidth.map(|b| tier("peer GPU", b)));
    tiers.push(tier("host memory", gpu.host_bandwidth));
    tiers.push(tier("network 400 Gbit/s", 50e9));
    tiers.push(tier("network 100 Gbit/s", 12.5e9));
    tiers.push(tier("NVMe", 7e9));
    tiers
}

/// Seconds to move `bytes`.
pub fn fetch_seconds(bytes: f64, bandwidth: f64) -> f64 {
    bytes / bandwidth
}

/// Bytes/s at which moving `bytes` takes as long as computing them in `recompute_seconds`.
pub fn break_even_bandwidth(bytes: f64, recompute_seconds: f64) -> f64 {
    bytes / recompute_seconds
}

/// Compares fetching a prefix of `tokens` with recomputing it under `cost`.
pub fn fetch_or_recompute(
    model: &Model,
    cost: &PricedCost,
    tiers: Vec<Tier>,
    tokens: u64,
) -> FetchCost {
    let bytes = (tokens * model.kv_bytes_per_token() + model.state_bytes()) as f64;
    let recompute_seconds = cost.cost.prefill(tokens, 0).seconds;
    let tiers = tiers.into_iter().map(|tier| {
        let fetch_seconds = fetch_seconds(bytes, tier.bandwidth);
        TierCost {
            fetch_seconds,
            fetch: fetch_seconds <= recompute_seconds,
            speedup: recompute_seconds / fetch_seconds,
            tier,
        }
    });
    FetchCost {
        cost: cost.name.clone(),
        calibration: cost.calibration.clone(),
        tokens,
        kv_bytes: bytes,
        recompute_seconds,
        break_even_bandwidth: break_even_bandwidth(bytes, recompute_seconds),
        tiers: tiers.collect(),
    }
}
