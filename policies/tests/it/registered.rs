//! Every policy file is registered.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use policies::{ADMISSION, EVICTION};

/// Files that implement a policy for others to use, and why they are none themselves.
const HELPERS: &[(&str, &str)] = &[
    ("by_key.rs", "any policy that is one key of a leaf's facts"),
    (
        "newcomers_last.rs",
        "wraps policies that make room before anything comes in",
    ),
];

#[test]
fn every_policy_file_is_registered() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let registered: BTreeSet<&str> = EVICTION
        .iter()
        .map(|entry| entry.name)
        .chain(ADMISSION.iter().map(|entry| entry.name))
        .collect();
    let mut entries = 0;
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let implements = ["EvictionPolicy for", "AdmissionPolicy for"]
            .iter()
            .any(|what| code.contains(what));
        let entry = code.contains("const ENTRY: EvictionEntry")
            || code.contains("const ENTRY: AdmissionEntry");
        if entry {
            entries += 1;
            let declared = declared_name(code);
            assert!(
                registered.contains(declared),
                "{name}: `{declared}` is not registered"
            );
        } else if implements {
            assert!(
                HELPERS.iter().any(|(helper, _)| *helper == name),
                "{name} is a policy without an ENTRY"
            );
        }
    }
    assert_eq!(
        entries,
        EVICTION.len() + ADMISSION.len(),
        "one file a policy"
    );
}

/// The name in an `ENTRY`.
fn declared_name(code: &str) -> &str {
    let name = code
        .split("const ENTRY")
        .nth(1)
        .and_then(|entry| entry.split("name: \"").nth(1));
    name.and_then(|rest| rest.split('"').next())
        .expect("an ENTRY has a name")
}
