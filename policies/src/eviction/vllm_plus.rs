//! vLLM as a checkpoint cache, by Marconi's authors. On models whose KV is per token it is `lru`.

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::leaf_lru::LeafLru;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "vllm+",
    summary: "checkpoint models: evicts leaves in LRU order; a state saved every 32 tokens (a baseline)",
    source: "baseline \"vLLM+\" of Marconi (Pan et al., MLSys 2025)",
    idea: "The block cache of vLLM, carried over to models with states: every block can be resumed from, and most states are \
           never used. The states are saved by its admission, checkpoint-every.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "states are heavy: those that nobody resumes from crowd out the rest; it is there to be beaten",
    params: &[],
    track: Track::Online,
    build: BuildEviction::With("checkpoint-every", |_, _| Box::new(LeafLru::new())),
};
