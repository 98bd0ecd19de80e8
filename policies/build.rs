//! Makes the registry's lists from the `mod` lines of `src/eviction/mod.rs` and `src/admission/mod.rs`, in their order, so that
//! a policy is one file and one line. A macro could do that too, but `rustfmt` and editors do not look for modules in macros.

use std::env;
use std::fs;
use std::path::Path;

fn main() {
    let out = env::var_os("OUT_DIR").expect("cargo sets it");
    for folder in ["eviction", "admission"] {
        let path = format!("src/{folder}/mod.rs");
        println!("cargo::rerun-if-changed={path}");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let entries: Vec<_> = text
            .lines()
            .filter_map(declared_module)
            .map(|module| format!("{module}::ENTRY"))
            .collect();
        let list = format!("&[{}]", entries.join(", "));
        let file = Path::new(&out).join(format!("{folder}.rs"));
        fs::write(&file, list).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The name in `mod name;` or `pub(crate) mod name;`.
fn declared_module(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    line.strip_prefix("mod ")?.strip_suffix(';')
}
