//! The registry: every policy that the command line, the conformance suite and the reports know.

use policy_api::{AdmissionPolicy, EvictionPolicy, Pair};

use crate::params::{Param, ParamError, Params};
use crate::{
    adaptive, all, arc, branch_points, clock, continuum, cost_aware, depth_lru, fifo, filo, gdsf,
    kvcache_wild, kvflow, learned, lecar, lfu, lhd, lirs, lmcache, lmcache_cost, lpc_like, lru,
    lru_k, mru, none, parrot, pgdsf, priority, random, s3_fifo, sae, second_occurrence, sieve,
    size, size_cap, slru, tail_lru, tinylfu, two_q, vllm, w_tinylfu,
};

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

/// All eviction policies, the baseline first.
pub const EVICTION: &[EvictionEntry] = &[
    lru::ENTRY,
    fifo::ENTRY,
    filo::ENTRY,
    mru::ENTRY,
    lfu::ENTRY,
    slru::ENTRY,
    priority::ENTRY,
    random::ENTRY,
    depth_lru::ENTRY,
    size::ENTRY,
    vllm::ENTRY,
    clock::ENTRY,
    sieve::ENTRY,
    s3_fifo::ENTRY,
    two_q::ENTRY,
    lru_k::ENTRY,
    arc::ENTRY,
    lirs::ENTRY,
    w_tinylfu::ENTRY,
    gdsf::ENTRY,
    lhd::ENTRY,
    lecar::ENTRY,
    cost_aware::ENTRY,
    kvcache_wild::ENTRY,
    pgdsf::ENTRY,
    kvflow::ENTRY,
    continuum::ENTRY,
    lpc_like::ENTRY,
    lmcache_cost::ENTRY,
    sae::ENTRY,
    tail_lru::ENTRY,
    parrot::ENTRY,
    learned::ENTRY,
];

/// All admission policies, the default first.
pub const ADMISSION: &[AdmissionEntry] = &[
    all::ENTRY,
    none::ENTRY,
    second_occurrence::ENTRY,
    branch_points::ENTRY,
    tinylfu::ENTRY,
    lmcache::ENTRY,
    size_cap::ENTRY,
    adaptive::ENTRY,
];

/// Why a policy cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no {kind} policy `{name}`; {}", nearest_hint(.nearest, .valid))]
    Unknown {
        /// `eviction` or `admission`.
        kind: &'static str,
        /// The name given.
        name: String,
        /// The most similar name, where one is similar.
        nearest: Option<&'static str>,
        /// All names.
        valid: Vec<&'static str>,
    },
    /// The parentheses do not close.
    #[error("`{0}` should look like name or name(key=value,key=value)")]
    Malformed(String),
    /// A parameter is wrong.
    #[error("policy `{name}`: {source}")]
    Param {
        /// The policy.
        name: &'static str,
        /// What is wrong.
        source: ParamError,
    },
}

fn nearest_hint(nearest: &Option<&'static str>, valid: &[&'static str]) -> String {
    let list = valid.join(", ");
    nearest.map_or_else(
        || format!("valid ones: {list}"),
        |name| format!("did you mean `{name}`? Valid ones: {list}"),
    )
}

/// A policy by name, with its parameters: `name` or `name(key=value,key=value)`.
#[derive(Clone, Debug)]
pub struct Spec<B: 'static> {
    /// The policy.
    pub entry: &'static Entry<B>,
    /// Its parameters.
    pub params: Params,
    /// As it was written.
    pub text: String,
}

/// An eviction policy with its parameters.
pub type EvictionSpec = Spec<BuildEviction>;
/// An admission policy with its parameters.
pub type AdmissionSpec = Spec<BuildAdmission>;

/// Finds an eviction policy.
///
/// # Errors
/// [`PolicyError`], with the nearest name or the valid parameters.
pub fn eviction(text: &str) -> Result<EvictionSpec, PolicyError> {
    find("eviction", EVICTION, text)
}

/// Finds an admission policy.
///
/// # Errors
/// [`PolicyError`], with the nearest name or the valid parameters.
pub fn admission(text: &str) -> Result<AdmissionSpec, PolicyError> {
    find("admission", ADMISSION, text)
}

/// Builds the pair that drives a cache.
pub fn build(eviction: &EvictionSpec, admission: &AdmissionSpec, setup: &Setup) -> Pair {
    Pair {
        eviction: (eviction.entry.build)(setup, &eviction.params),
        admission: (admission.entry.build)(setup, &admission.params),
    }
}

fn find<B>(
    kind: &'static str,
    entries: &'static [Entry<B>],
    text: &str,
) -> Result<Spec<B>, PolicyError> {
    let text = text.trim();
    let (name, params) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => (
            name.trim(),
            rest.strip_suffix(')')
                .ok_or_else(|| PolicyError::Malformed(text.to_owned()))?,
        ),
    };
    let entry = entries
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| unknown(kind, entries, name))?;
    let params = Params::parse(entry.params, params).map_err(|source| PolicyError::Param {
        name: entry.name,
        source,
    })?;
    Ok(Spec {
        entry,
        params,
        text: text.to_owned(),
    })
}

fn unknown<B>(kind: &'static str, entries: &'static [Entry<B>], name: &str) -> PolicyError {
    let similarity = |valid: &str| strsim::jaro_winkler(&name.to_lowercase(), valid);
    let nearest = entries
        .iter()
        .map(|entry| entry.name)
        .max_by(|a, b| similarity(a).total_cmp(&similarity(b)))
        .filter(|valid| similarity(valid) > 0.7);
    PolicyError::Unknown {
        kind,
        name: name.to_owned(),
        nearest,
        valid: entries.iter().map(|e| e.name).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_entry_is_described() {
        let docs = |e: [&'static str; 5]| assert!(e.iter().all(|text| !text.is_empty()), "{e:?}");
        let mut names = BTreeSet::new();
        for e in EVICTION {
            docs([e.name, e.summary, e.source, e.idea, e.cost]);
            assert!(names.insert(e.name), "{} is registered twice", e.name);
        }
        names.clear();
        for e in ADMISSION {
            docs([e.name, e.summary, e.source, e.idea, e.cost]);
            assert!(names.insert(e.name), "{} is registered twice", e.name);
        }
    }

    #[test]
    fn defaults_are_legal() {
        for params in EVICTION
            .iter()
            .map(|e| e.params)
            .chain(ADMISSION.iter().map(|e| e.params))
        {
            for param in params {
                Params::parse(params, &format!("{}={}", param.name, param.default)).unwrap();
            }
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let message = eviction("lruu").unwrap_err().to_string();
        assert!(
            message.starts_with("there is no eviction policy `lruu`; did you mean `lru`?"),
            "{message}"
        );
        assert!(
            eviction("qqq")
                .unwrap_err()
                .to_string()
                .contains("valid ones: lru, fifo")
        );
        assert_eq!(
            eviction("lru(").unwrap_err(),
            PolicyError::Malformed("lru(".to_owned())
        );
        assert_eq!(
            eviction("lru(x=1)").unwrap_err().to_string(),
            "policy `lru`: there is no parameter `x`; it takes none"
        );
    }
}
