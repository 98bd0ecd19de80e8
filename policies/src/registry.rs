//! The registry: every policy that the command line, the conformance suite and the reports know.

use cache::{PolicyContext, PolicyFactory};
use params::{Call, Malformed, ParamError, Params, UnknownName};
use policy_api::Pair;

use crate::admission::{
    self, adaptive, all, branch_points, checkpoint_every, lmcache, none, second_occurrence,
    size_cap, tinylfu,
};
use crate::entry::{AdmissionEntry, BuildAdmission, BuildEviction, Entry, EvictionEntry, Track};
use crate::eviction::{
    arc, clock, continuum, cost_aware, depth_lru, fifo, filo, gdsf, kvcache_wild, kvflow, learned,
    lecar, lfu, lhd, lirs, lmcache_cost, lpc_like, lru, lru_k, marconi, mru, parrot, pgdsf,
    priority, random, s3_fifo, sae, sglang_plus, sieve, size, slru, tail_lru, two_q, vllm,
    vllm_plus, w_tinylfu,
};

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
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The parentheses do not close.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A parameter is wrong.
    #[error("policy `{name}`: {problem}")]
    Param {
        /// The policy.
        name: &'static str,
        /// What is wrong.
        problem: ParamError,
    },
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
    find("eviction policy", EVICTION, text)
}

/// Finds an admission policy.
///
/// # Errors
/// [`PolicyError`], with the nearest name or the valid parameters.
pub fn admission(text: &str) -> Result<AdmissionSpec, PolicyError> {
    find("admission policy", ADMISSION, text)
}

/// Every eviction policy with every admission policy; where none is named, with the one that it comes with.
pub fn factories(evictions: &[EvictionSpec], admissions: &[AdmissionSpec]) -> Vec<PolicyFactory> {
    let mut all = Vec::new();
    for eviction in evictions {
        if admissions.is_empty() {
            all.push(factory(eviction, &partner(eviction)));
        }
        all.extend(
            admissions
                .iter()
                .map(|admission| factory(eviction, admission)),
        );
    }
    all
}

/// The admission policy that an eviction policy comes with.
pub fn partner(eviction: &EvictionSpec) -> AdmissionSpec {
    let name = eviction.entry.name;
    let partner = PARTNERS.iter().find(|(of, _)| *of == name);
    admission(partner.map_or("all", |(_, partner)| partner)).expect("partners are registered")
}

/// The pair that drives a cache, as a value that can build it.
pub fn factory(eviction: &EvictionSpec, admission: &AdmissionSpec) -> PolicyFactory {
    let track = match [eviction.entry.track, admission.entry.track].contains(&Track::Declared) {
        true => Track::Declared,
        false => Track::Online,
    };
    let names = (eviction.text.clone(), admission.text.clone());
    let (eviction, admission) = (eviction.clone(), admission.clone());
    PolicyFactory::new(names.0, names.1, track, move |context| {
        Box::new(build(&eviction, &admission, context))
    })
}

/// Builds the pair that drives a cache.
pub fn build(eviction: &EvictionSpec, admission: &AdmissionSpec, context: &PolicyContext) -> Pair {
    Pair {
        eviction: (eviction.entry.build)(context, &eviction.params),
        admission: (admission.entry.build)(context, &admission.params),
    }
}

fn find<B>(
    kind: &'static str,
    entries: &'static [Entry<B>],
    text: &str,
) -> Result<Spec<B>, PolicyError> {
    let call = Call::parse(text)?;
    let entry = params::find(kind, entries, |entry| entry.name, call.name)?;
    let params =
        Params::parse(entry.params, call.arguments).map_err(|problem| PolicyError::Param {
            name: entry.name,
            problem,
        })?;
    Ok(Spec {
        entry,
        params,
        text: canonical(entry.name, text),
    })
}

/// As it was written, but for the case and the spaces of the name.
fn canonical(name: &str, text: &str) -> String {
    let arguments = text.trim().find('(').map_or("", |at| &text.trim()[at..]);
    format!("{name}{arguments}")
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
            Malformed("lru(".to_owned()).into()
        );
        assert_eq!(
            eviction("lru(x=1)").unwrap_err().to_string(),
            "policy `lru`: there is no parameter `x`; it takes none"
        );
    }
}
