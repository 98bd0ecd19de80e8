//! The policies under test: all that are registered, with every choice that a parameter offers.

use std::sync::Arc;

use cache::{CacheConfig, EvictUnit};
use policies::{ADMISSION, Domain, EVICTION, Param, PolicyContext};
use policy_api::Pair;

use testkit::{FlatCost, config};

/// All eviction policies as one would write them.
pub(crate) fn evictions() -> Vec<String> {
    let variants = |entry: &policies::EvictionEntry| spellings(entry.name, entry.params);
    EVICTION.iter().flat_map(variants).collect()
}

/// All admission policies as one would write them, and one memory that is soon full.
pub(crate) fn admissions() -> Vec<String> {
    let variants = |entry: &policies::AdmissionEntry| spellings(entry.name, entry.params);
    let mut all: Vec<_> = ADMISSION.iter().flat_map(variants).collect();
    all.push("second-occurrence(memory=5)".to_owned());
    all.push("checkpoint-every(tokens=1)".to_owned());
    all
}

/// The name alone, and with each choice that is not the default.
fn spellings(name: &str, params: &[Param]) -> Vec<String> {
    let mut all = vec![name.to_owned()];
    for param in params {
        if let Domain::Choice(words) = param.domain {
            let others = words.iter().filter(|word| **word != param.default);
            all.extend(others.map(|word| format!("{name}({}={word})", param.name)));
        }
    }
    all
}

/// A pair for blocks of one token and one byte.
pub(crate) fn pair(eviction: &str, admission: &str, capacity_blocks: u64) -> Pair {
    pair_for(
        eviction,
        admission,
        config(capacity_blocks, EvictUnit::Block, None),
    )
}

/// A pair for any cache, that knows what prefill costs.
pub(crate) fn pair_for(eviction: &str, admission: &str, config: CacheConfig) -> Pair {
    let context = PolicyContext {
        cost: Some(Arc::new(FlatCost)),
        ..PolicyContext::new(config, 7)
    };
    policies::build(
        &policies::eviction(eviction).expect("registered"),
        &policies::admission(admission).expect("registered"),
        &context,
    )
}
