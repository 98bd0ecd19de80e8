//! SGLang as a checkpoint cache, by Marconi's authors. On models whose KV is per token it is `lru`.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::leaf_lru::LeafLru;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "sglang+",
    summary: "checkpoint models: evicts leaves in LRU order; states saved as marconi does (a baseline)",
    source: "baseline \"SGLang+\" of Marconi (Pan et al., MLSys 2025)",
    idea: "Marconi's admission alone: few states, each likely to be used, and plain recency to choose among them.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "long prefixes and short ones compete: recency does not tell what a state saves",
    params: &[],
    track: Track::Online,
    build: BuildEviction::With("marconi", |_, _| Box::new(LeafLru::new())),
};
