//! The pages of tables in `docs` name every policy, and still say what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use policies::{ADMISSION, EVICTION};

use crate::support::{REPLAY, TRACE_GEN, run, stdout};

const MADE_ANEW: &str = "is stale: run docs/policy-table.sh, docs/decision-cost.sh";

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

/// What stands below a heading, up to the next one that is no deeper.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let start = page.find(&format!("\n{heading}\n")).expect("a heading");
    let text = &page[start + heading.len() + 1..];
    let is_end = |line: &str| {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        (1..=heading.find(' ').unwrap()).contains(&level)
    };
    let lines = text.split_inclusive('\n').skip(1);
    let length: usize = lines
        .take_while(|line| !is_end(line))
        .map(str::len)
        .sum::<usize>()
        + 1;
    &text[..length]
}

/// Cells of the rows of policies in a text, by eviction and admission policy, without what only marks them.
fn cells(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let plain = text.replace("**", "").replace(" (hints)", "");
    let rows = plain.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let mut name = || cells.next().unwrap().trim_matches('`').to_owned();
        let pair = (name(), name());
        (pair, cells.map(str::to_owned).collect())
    })
    .collect()
}

fn names(registry: impl Iterator<Item = &'static str>) -> BTreeSet<String> {
    registry.map(str::to_owned).collect()
}

/// The two parts of a page name the policies of the registry, no more and no less.
fn assert_names_all(page: &str, evictions: &str, admissions: &str) {
    let of_page: BTreeSet<_> = cells(evictions).into_keys().map(|pair| pair.0).collect();
    let registered = names(EVICTION.iter().map(|entry| entry.name));
    assert_eq!(of_page, registered, "{page} {MADE_ANEW}");
    let of_page: BTreeSet<_> = cells(admissions).into_keys().map(|pair| pair.1).collect();
    let registered = names(ADMISSION.iter().map(|entry| entry.name));
    assert_eq!(of_page, registered, "{page} {MADE_ANEW}");
}

#[test]
fn the_table_of_policies_names_every_policy() {
    let page = page("policy-table.md");
    for part in ["### Overview", "### mixed.parquet"] {
        assert_names_all(
            "policy-table.md",
            section(section(&page, "## Eviction"), part),
            section(section(&page, "## Admission"), part),
        );
    }
}

#[test]
fn the_table_of_costs_names_every_policy() {
    let page = page("decision-cost.md");
    // Beside the registry some policies stand with a parameter.
    let default_ones: String = page
        .lines()
        .filter(|line| !line.contains('('))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_names_all("decision-cost.md", &default_ones, &default_ones);
}

/// The cheapest of the five workloads is replayed again, under every policy.
#[test]
fn the_table_of_policies_still_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let made = ["preset", "example", "--seed", "1", "-o", "mixed.parquet"];
    stdout(&run(TRACE_GEN, folder.path(), &made));
    let page = page("policy-table.md");
    let parts = [
        ("## Eviction", &["--policy", "every"][..]),
        (
            "## Admission",
            &["--policy", "lru,cost-aware", "--admission", "every"],
        ),
    ];
    for (part, policies) in parts {
        let form = ["--capacity", "1%,5%,10%,25%", "--format", "markdown"];
        let args = [&["--trace", "mixed.parquet"], policies, &form].concat();
        let replayed = stdout(&run(REPLAY, folder.path(), &args));
        let expected = cells(section(section(&page, part), "### mixed.parquet"));
        assert!(expected.len() > 10, "no table in {part}");
        assert_eq!(cells(&replayed), expected, "{part} {MADE_ANEW}");
    }
}
