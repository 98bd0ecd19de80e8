//! The registry: every policy that the command line, the conformance suite and the reports know.

use cache::{PolicyContext, PolicyFactory};
use params::{Call, Malformed, ParamError, Params, UnknownName};
use policy_api::{EvictionPolicy, Pair, Policy};

pub use crate::admission::ADMISSION;
use crate::entry::{BuildAdmission, BuildEviction, Entry, Track};
pub use crate::eviction::EVICTION;

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

/// Every eviction policy with every admission policy; where none is named, with what admits by default.
pub fn factories(evictions: &[EvictionSpec], admissions: &[AdmissionSpec]) -> Vec<PolicyFactory> {
    let mut all = Vec::new();
    for eviction in evictions {
        if admissions.is_empty() {
            all.push(default_factory(eviction));
        }
        all.extend(
            admissions
                .iter()
                .map(|admission| factory(eviction, admission)),
        );
    }
    all
}

/// An eviction policy with what admits where no admission policy is named, as a value that can build both.
pub fn default_factory(eviction: &EvictionSpec) -> PolicyFactory {
    let BuildEviction::Both(build) = eviction.entry.build else {
        let name = eviction.entry.default_admission();
        let admission = admission(name).expect("a test looks all of them up");
        return factory(eviction, &admission);
    };
    let (name, params) = (eviction.text.clone(), eviction.params.clone());
    PolicyFactory::new(name.clone(), name, eviction.entry.track, move |context| {
        build(context, &params)
    })
}

/// The pair that drives a cache, as a value that can build it.
pub fn factory(eviction: &EvictionSpec, admission: &AdmissionSpec) -> PolicyFactory {
    let tracks = [eviction.entry.track, admission.entry.track];
    let track = if tracks.contains(&Track::Declared) {
        Track::Declared
    } else {
        Track::Online
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
        eviction: build_eviction(eviction, context),
        admission: (admission.entry.build)(context, &admission.params),
    }
}

/// The half that evicts, also of an object that is both.
fn build_eviction(eviction: &EvictionSpec, context: &PolicyContext) -> Box<dyn EvictionPolicy> {
    match eviction.entry.build {
        BuildEviction::Alone(build) | BuildEviction::With(_, build) => {
            build(context, &eviction.params)
        }
        BuildEviction::Both(build) => {
            let both: Box<dyn Policy> = build(context, &eviction.params);
            both
        }
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
    fn what_admits_by_default_is_registered() {
        for entry in EVICTION {
            let spec = eviction(entry.name).unwrap();
            let factory = default_factory(&spec);
            assert_eq!(factory.admission(), entry.default_admission());
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
