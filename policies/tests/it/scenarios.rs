//! Scenarios whose victims were worked out by hand, from `scenarios.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::under_test::{evictions, pair};
use testkit::{SmallTrace as Trace, asks};

/// Policies that no hand can follow, and why.
const EXCLUDED: &[(&str, &str)] = &[
    ("random", "draws lots"),
    ("lecar", "draws lots"),
    ("learned", "draws the moments it learns from"),
];

#[derive(Deserialize)]
struct File {
    scenario: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    capacity_blocks: u64,
    requests: Vec<String>,
    expect: Vec<Expect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    why: String,
    policies: Vec<String>,
    victims: Vec<String>,
}

fn scenarios() -> Vec<Scenario> {
    let file: File = toml::from_str(include_str!("scenarios.toml")).expect("well formed");
    file.scenario
}

#[test]
fn victims_are_those_worked_out_by_hand() {
    for scenario in scenarios() {
        let trace = Trace::new(&asks(&scenario.requests));
        for expect in &scenario.expect {
            for policy in &expect.policies {
                let mut pair = pair(policy, "all", scenario.capacity_blocks);
                assert_eq!(
                    trace.victims(scenario.capacity_blocks, &mut pair),
                    expect.victims,
                    "{policy} in \"{}\": {}",
                    scenario.name,
                    expect.why
                );
            }
        }
    }
}

#[test]
fn every_scenario_has_every_policy() {
    let all: BTreeSet<String> = evictions().into_iter().collect();
    let excluded: BTreeSet<String> = EXCLUDED
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert!(
        excluded.is_subset(&all),
        "an exclusion of what is not there"
    );
    for scenario in scenarios() {
        let named: Vec<&String> = scenario
            .expect
            .iter()
            .flat_map(|expect| &expect.policies)
            .collect();
        let expected: BTreeSet<String> = named.iter().map(|name| (*name).clone()).collect();
        assert_eq!(
            named.len(),
            expected.len(),
            "{}: named twice",
            scenario.name
        );
        let wanted: BTreeSet<String> = all.difference(&excluded).cloned().collect();
        assert_eq!(expected, wanted, "{}", scenario.name);
    }
}
