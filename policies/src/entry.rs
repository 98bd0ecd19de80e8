//! What the registry knows of a policy.

pub(crate) use cache::PolicyContext;
pub(crate) use cache::Track;
use params::{Param, Params};
use policy_api::{AdmissionPolicy, EvictionPolicy};

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
pub type BuildEviction = fn(&PolicyContext, &Params) -> Box<dyn EvictionPolicy>;
/// Builds an admission policy.
pub type BuildAdmission = fn(&PolicyContext, &Params) -> Box<dyn AdmissionPolicy>;

/// An eviction policy of the registry.
pub type EvictionEntry = Entry<BuildEviction>;
/// An admission policy of the registry.
pub type AdmissionEntry = Entry<BuildAdmission>;
