#!/usr/bin/env bash
# Adds an eviction and an admission policy to a copy of the repository, each by one file and one line, and runs the tests of
# `policies`, which iterate the registry. The copy has a target folder of its own: in a shared one its registry would stay.
set -euo pipefail
repository=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
(cd "$repository" && git ls-files -z | tar --create --null --files-from=- --file=-) | tar --extract --directory="$copy"
export CARGO_TARGET_DIR=$copy/target
cd "$copy/policies"

# The file: of its own, an entry and a rule.
cat >src/eviction/once_used_first.rs <<'END'
//! What was used once is evicted first.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{by_key, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "once-used-first",
    summary: "evicts what was used once, then by last use",
    source: "a template",
    idea: "A second use tells a prefix worth keeping.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "there is anything better",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(by_key(|leaf| (leaf.uses >= 2, lru_order(leaf))))),
};
END
cat >src/admission/short_only.rs <<'END'
//! Admits short paths only.

use policy_api::{AdmissionPolicy, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "short-only",
    summary: "admits paths of at most four blocks",
    source: "a template",
    idea: "Short paths are cheap to keep.",
    cost: "none",
    avoid_when: "there is anything better",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(ShortOnly),
};

struct ShortOnly;

impl AdmissionPolicy for ShortOnly {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        (request.path.len() as u32).min(4).max(request.held_blocks)
    }
}
END

# The lines.
sed -i 's/^mod vllm_plus;$/&\nmod once_used_first;/' src/eviction/mod.rs
sed -i 's/^mod checkpoint_every;$/&\nmod short_only;/' src/admission/mod.rs

cargo fmt --check -- src/lib.rs
cargo test
grep --quiet 'once_used_first::ENTRY' "$CARGO_TARGET_DIR"/debug/build/policies-*/out/eviction.rs
echo "one file and one line: ok"
