//! What the registry knows of a policy.

use std::sync::Arc;

use cache::Shape;
use policy_api::{AdmissionPolicy, EvictionPolicy, PrefillCost, StateBytes};

use crate::params::{Param, Params};

/// What a policy is built for.
#[derive(Clone)]
pub struct Setup {
    /// Capacity of the cache in whole blocks.
    pub capacity_blocks: u64,
    /// Capacity of the cache in bytes.
    pub capacity_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// What a saved state weighs, in checkpoint models.
    pub state: Option<StateBytes>,
    /// What prefill costs, for policies that try out what they would have saved. Without it they do not.
    pub cost: Option<Arc<dyn PrefillCost + Send + Sync>>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Setup {
    /// For a cache of that shape, of which nobody says what prefill costs.
    pub fn new(shape: Shape, seed: u64) -> Self {
        Self {
            capacity_blocks: shape.capacity_blocks(),
            capacity_bytes: shape.capacity_bytes,
            block_bytes: shape.block_bytes,
            block_tokens: shape.block_tokens,
            state: shape.state,
            cost: None,
            seed,
        }
    }
}

/// What a policy may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The past only.
    Online,
    /// Also the declared hints of the trace. Scored on its own.
    Declared,
}

/// One policy of the registry. `B` is the function that builds it.
#[derive(Clone, Copy, Debug)]
pub struct Entry<B: 'static> {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// The idea, in a few sentences.
    pub idea: &'static str,
    /// What a decision costs.
    pub cost: &'static str,
    /// When not to use it.
    pub avoid_when: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it may see.
    pub track: Track,
    /// Builds it.
    pub build: B,
}

/// Builds an eviction policy.
pub type BuildEviction = fn(&Setup, &Params) -> Box<dyn EvictionPolicy>;
/// Builds an admission policy.
pub type BuildAdmission = fn(&Setup, &Params) -> Box<dyn AdmissionPolicy>;

/// An eviction policy of the registry.
pub type EvictionEntry = Entry<BuildEviction>;
/// An admission policy of the registry.
pub type AdmissionEntry = Entry<BuildAdmission>;
