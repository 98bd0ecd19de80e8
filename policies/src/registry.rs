//! The registry: every policy that the command line, the conformance suite and the reports know.

use policy_api::Pair;

use crate::admission::{
    self, adaptive, all, branch_points, checkpoint_every, lmcache, none, second_occurrence,
    size_cap, tinylfu,
};
use crate::entry::{AdmissionEntry, BuildAdmission, BuildEviction, Entry, EvictionEntry, Setup};
use crate::eviction::{
    arc, clock, continuum, cost_aware, depth_lru, fifo, filo, gdsf, kvcache_wild, kvflow, learned,
    lecar, lfu, lhd, lirs, lmcache_cost, lpc_like, lru, lru_k, marconi, mru, parrot, pgdsf,
    priority, random, s3_fifo, sae, sglang_plus, sieve, size, slru, tail_lru, two_q, vllm,
    vllm_plus, w_tinylfu,
};
use crate::params::{ParamError, Params};

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
    marconi::ENTRY,
    sglang_plus::ENTRY,
    vllm_plus::ENTRY,
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
    admission::marconi::ENTRY,
    checkpoint_every::ENTRY,
];

/// Eviction policies that come with an admission policy of their own: what is taken where none is named. All others come
/// with `all`.
const PARTNERS: &[(&str, &str)] = &[
    ("marconi", "marconi"),
    ("sglang+", "marconi"),
    ("vllm+", "checkpoint-every"),
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
    #[error("policy `{name}`: {problem}")]
    Param {
        /// The policy.
        name: &'static str,
        /// What is wrong.
        problem: ParamError,
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

/// An eviction policy and an admission policy, by name.
pub type PolicyPair = (EvictionSpec, AdmissionSpec);

/// Every eviction policy with every admission policy; where none is named, with the one that it comes with.
pub fn pairs(evictions: &[EvictionSpec], admissions: &[AdmissionSpec]) -> Vec<PolicyPair> {
    let mut pairs = Vec::new();
    for eviction in evictions {
        if admissions.is_empty() {
            pairs.push((eviction.clone(), partner(eviction)));
        }
        for admission in admissions {
            pairs.push((eviction.clone(), admission.clone()));
        }
    }
    pairs
}

/// The admission policy that an eviction policy comes with.
pub fn partner(eviction: &EvictionSpec) -> AdmissionSpec {
    let name = eviction.entry.name;
    let partner = PARTNERS.iter().find(|(of, _)| *of == name);
    admission(partner.map_or("all", |(_, partner)| partner)).expect("partners are registered")
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
    let params = Params::parse(entry.params, params).map_err(|problem| PolicyError::Param {
        name: entry.name,
        problem,
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
    fn partners_are_registered() {
        for (of, partner) in PARTNERS {
            assert!(EVICTION.iter().any(|entry| entry.name == *of), "{of}");
            assert!(
                ADMISSION.iter().any(|entry| entry.name == *partner),
                "{partner}"
            );
        }
    }

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
