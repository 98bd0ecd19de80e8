//! The floor plan, executed: the table in ARCHITECTURE.md says who may use whom.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Per crate, the crates of this workspace that it may use.
type Plan = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The table under the heading "Floors": crate, duty, may use.
fn plan() -> Plan {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, floors) = page
        .split_once("| crate | duty | may use |\n")
        .expect("a table of crates");
    let rows = floors
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, uses] = cells[..] else {
            panic!("not three cells: {row}")
        };
        (quoted(name).into_iter().next().expect(row), quoted(uses))
    })
    .collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// Per crate of the workspace, examples apart, the crates of the workspace that it uses in its product code.
fn edges() -> Plan {
    let metadata = metadata();
    let names: BTreeSet<_> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let is_example = |path: &cargo_metadata::camino::Utf8Path| {
        path.components().any(|part| part.as_str() == "examples")
    };
    let packages = metadata
        .packages
        .iter()
        .filter(|package| !is_example(&package.manifest_path));
    packages
        .map(|package| {
            let uses = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| dependency.name.clone())
                .filter(|name| names.contains(name));
            (package.name.to_string(), uses.collect())
        })
        .collect()
}

#[test]
fn every_crate_has_a_place_and_uses_only_what_the_plan_allows() {
    let (plan, edges) = (plan(), edges());
    let crates = |plan: &Plan| plan.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(crates(&plan), crates(&edges), "the plan and the workspace");
    for (name, uses) in &edges {
        let forbidden: Vec<_> = uses.difference(&plan[name]).collect();
        assert!(forbidden.is_empty(), "{name} may not use {forbidden:?}");
        let unused: Vec<_> = plan[name].difference(uses).collect();
        assert!(
            unused.is_empty(),
            "{name} does not use {unused:?}: strike it from the plan"
        );
    }
    assert!(
        edges.values().map(BTreeSet::len).sum::<usize>() > 20,
        "{edges:?}"
    );
}

/// A floor stands on those above it in the table, so that arrows point one way only.
#[test]
fn the_table_is_in_order() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, floors) = page.split_once("| crate | duty | may use |\n").unwrap();
    let mut above = BTreeSet::new();
    for row in floors
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<_> = row.trim_matches('|').split('|').collect();
        let uses = quoted(cells[2]);
        assert!(uses.is_subset(&above), "{row} uses what stands below it");
        above.extend(quoted(cells[0]));
    }
}
