//! The sizes of a cache.

use policy_api::StateBytes;

/// How much one eviction takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EvictUnit {
    /// As many blocks from the tail of the victim as room is needed.
    #[default]
    Block,
    /// The whole victim. Its size depends on the past: nodes split where a look-up or an insert ends or diverges. A tail that was
    /// split off keeps its access time.
    Leaf,
    /// The same, but a split refreshes the tail too, because SGLang stamps a node before it splits it
    /// (`radix_cache.py`, `_match_prefix_helper`).
    LeafSglang,
}

impl EvictUnit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Block, Self::Leaf, Self::LeafSglang];

    /// Its name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Leaf => "leaf",
            Self::LeafSglang => "leaf-sglang",
        }
    }
}

/// Sizes of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Memory for blocks. 0 is legal and holds nothing.
    pub capacity_bytes: u64,
    /// Memory of one block, at least 1.
    pub block_bytes: u64,
    /// Tokens of one block, at least 1.
    pub block_tokens: u32,
    /// How much one eviction takes, where KV is per token.
    pub evict_unit: EvictUnit,
    /// For models that resume only where a state was saved: what one weighs.
    pub state: Option<StateBytes>,
}

impl CacheConfig {
    /// Whole blocks that fit.
    pub fn capacity_blocks(&self) -> u64 {
        self.capacity_bytes / self.block_bytes
    }
}
