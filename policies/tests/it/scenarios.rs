//! Scenarios whose victims were worked out by hand, from `scenarios.toml`.

use std::collections::BTreeSet;

use serde::Deserialize;

use testkit::{SmallTrace as Trace, asks};

use crate::under_test::pair;

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

/// A new policy need not be in the scenarios; who is there is expected once.
#[test]
fn nobody_is_expected_to_do_two_things() {
    for scenario in scenarios() {
        let named = scenario.expect.iter().flat_map(|expect| &expect.policies);
        let mut seen = BTreeSet::new();
        for policy in named {
            assert!(seen.insert(policy), "{policy} twice in {}", scenario.name);
        }
    }
}
