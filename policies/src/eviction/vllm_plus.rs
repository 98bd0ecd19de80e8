//! vLLM as a checkpoint cache: a state at every block of 32 tokens, leaves in LRU order.
//!
//! Source: the baseline "vLLM+" of Marconi (Pan et al., MLSys 2025): block-wise checkpoints, as vLLM would make them for
//! a hybrid model. As an eviction policy this is LRU over leaves; the states come with its admission, `checkpoint-every`,
//! which `replay` takes if none is named. On models whose KV is per token it is `lru`.
//!
//! Cost: as `lru`. Do not use it where states are heavy: hardly any of them is ever used, and they crowd out the rest.

use crate::entry::{EvictionEntry, Track};
use crate::parts::leaf_lru::LeafLru;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "vllm+",
    summary: "checkpoint models: leaves in LRU order, a state saved every 32 tokens (a baseline)",
    source: "baseline of Marconi, MLSys 2025",
    idea: "The block cache of vLLM, carried over to models with states: every block can be resumed from, and most states are \
           never used.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "states are heavy; it is there to be beaten",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(LeafLru::new()),
};
