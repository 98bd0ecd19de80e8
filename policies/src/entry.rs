//! What the registry knows of a policy.

pub(crate) use cache::PolicyContext;
pub(crate) use cache::Track;
use params::{Param, Params};
use policy_api::{AdmissionPolicy, EvictionPolicy, Policy};

/// One policy of the registry: all that people are told about it, said here once. `B` says how it is built.
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

/// How an eviction policy is built, and what admits beside it.
#[derive(Clone, Copy, Debug)]
pub enum BuildEviction {
    /// It evicts. Everything is admitted, unless an admission policy is named.
    Alone(fn(&PolicyContext, &Params) -> Box<dyn EvictionPolicy>),
    /// It evicts, and was made for the admission policy of this name, which admits unless another one is named.
    With(
        &'static str,
        fn(&PolicyContext, &Params) -> Box<dyn EvictionPolicy>,
    ),
    /// One object evicts and admits, so that both share its state. Where an admission policy is named, that one admits
    /// instead: the object is then not asked.
    Both(fn(&PolicyContext, &Params) -> Box<dyn Policy>),
}

/// Builds an admission policy.
pub type BuildAdmission = fn(&PolicyContext, &Params) -> Box<dyn AdmissionPolicy>;

/// An eviction policy of the registry.
pub type EvictionEntry = Entry<BuildEviction>;
/// An admission policy of the registry.
pub type AdmissionEntry = Entry<BuildAdmission>;

impl EvictionEntry {
    /// Name of the admission policy that admits where none is named: for an object that is both, its own.
    pub fn default_admission(&self) -> &'static str {
        match self.build {
            BuildEviction::Alone(_) => "all",
            BuildEviction::With(admission, _) => admission,
            BuildEviction::Both(_) => self.name,
        }
    }
}
