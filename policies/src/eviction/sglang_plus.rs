//! SGLang as a checkpoint cache: states where Marconi saves them, leaves in LRU order.
//!
//! Source: the baseline "SGLang+" of Marconi (Pan et al., MLSys 2025). As an eviction policy this is LRU over leaves; what
//! is saved is up to its admission, `marconi`, which `replay` takes if none is named. On models whose KV is per token it is
//! `lru`.
//!
//! Cost: as `lru`. Do not use it where long prefixes and short ones compete: recency alone does not tell what a state saves.

use crate::entry::{EvictionEntry, Track};
use crate::parts::leaf_lru::LeafLru;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "sglang+",
    summary: "checkpoint models: leaves in LRU order, states saved as marconi does (a baseline)",
    source: "baseline of Marconi, MLSys 2025",
    idea: "Marconi's admission alone: few states, each likely to be used, and plain recency to choose among them.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "long prefixes and short ones compete: recency does not tell what a state saves",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(LeafLru::new()),
};
