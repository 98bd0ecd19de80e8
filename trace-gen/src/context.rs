//! What every generator is told.

use trace::Content;

/// What every family is told beside its parameters.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorContext {
    /// Tokens, or blocks of a size.
    pub content: Content,
    /// Seed of everything drawn.
    pub seed: u32,
    /// Whether the output's tokens or blocks are written, or only their number.
    pub outputs_known: bool,
}

impl Default for GeneratorContext {
    /// Blocks of 16 tokens, seed 0, outputs known.
    fn default() -> Self {
        Self {
            content: Content::Blocks {
                block_tokens: trace::DEFAULT_BLOCK_TOKENS,
            },
            seed: 0,
            outputs_known: true,
        }
    }
}
