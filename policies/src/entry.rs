//! What the registry knows of a policy.

use policy_api::{AdmissionPolicy, EvictionPolicy};

use crate::params::{Param, Params};

/// What a policy is built for.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Capacity of the cache in whole blocks.
    pub capacity_blocks: u64,
    /// Capacity of the cache in bytes.
    pub capacity_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Seed of everything random.
    pub seed: u64,
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
