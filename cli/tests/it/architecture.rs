//! The floor plan, executed: who may use whom.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Crate, and the crates of this workspace that it may use. Arrows only point down.
const FLOORS: &[(&str, &[&str])] = &[
    ("policy-api", &[]),
    ("trace", &["policy-api"]),
    ("params", &[]),
    ("roofline", &["params", "policy-api"]),
    ("calibrate", &["roofline"]),
    ("trace-gen", &["trace", "policy-api"]),
    ("cache", &["policy-api"]),
    ("policies", &["params", "policy-api", "cache"]),
    ("oracle", &["trace", "roofline", "cache", "policy-api"]),
    (
        "replay",
        &[
            "params",
            "trace",
            "roofline",
            "cache",
            "policy-api",
            "policies",
            "oracle",
        ],
    ),
    (
        "competition",
        &[
            "replay",
            "oracle",
            "policies",
            "trace-gen",
            "trace",
            "policy-api",
        ],
    ),
    ("reports", &["replay", "oracle", "competition"]),
    (
        "cli",
        &[
            "policy-api",
            "trace",
            "params",
            "roofline",
            "calibrate",
            "trace-gen",
            "cache",
            "policies",
            "oracle",
            "replay",
            "competition",
            "reports",
        ],
    ),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn arrows_only_point_down() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let floors: BTreeMap<&str, &[&str]> = FLOORS.iter().copied().collect();
    let names: BTreeSet<&str> = metadata
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let mut edges = 0;
    for package in &metadata.packages {
        if package
            .manifest_path
            .components()
            .any(|part| part.as_str() == "examples")
        {
            continue;
        }
        let allowed = floors.get(package.name.as_str());
        let allowed =
            allowed.unwrap_or_else(|| panic!("{} has no place in the floor plan", package.name));
        for dependency in &package.dependencies {
            let within = names.contains(dependency.name.as_str());
            if within && dependency.kind != DependencyKind::Development {
                edges += 1;
                assert!(
                    allowed.contains(&dependency.name.as_str()),
                    "{} may not use {}",
                    package.name,
                    dependency.name
                );
            }
        }
    }
    assert!(edges > 10, "only {edges} edges were seen");
}
