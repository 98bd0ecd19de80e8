//! Every policy file is registered.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use policies::{ADMISSION, EVICTION};

#[test]
fn every_policy_file_is_registered() {
    let names = |entries: Vec<&'static str>| entries.into_iter().collect::<BTreeSet<_>>();
    let eviction = names(EVICTION.iter().map(|entry| entry.name).collect());
    let admission = names(ADMISSION.iter().map(|entry| entry.name).collect());
    for (folder, registered) in [("eviction", eviction), ("admission", admission)] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .join(folder);
        let mut declared = BTreeSet::new();
        for file in fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().unwrap() != "mod.rs" {
                let text = fs::read_to_string(&path).unwrap();
                declared.insert(declared_name(&text).to_owned());
            }
        }
        assert_eq!(
            declared,
            registered.iter().map(|name| (*name).to_owned()).collect()
        );
    }
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
