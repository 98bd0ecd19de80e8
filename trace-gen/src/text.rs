//! Synthetic text: token ids or block ids of which no two are alike by accident.

use std::borrow::Cow;

use trace::{Body, Content};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Hands out ids that nobody has had. Ids come in sequence, which packs well, from a start that the seed determines.
#[derive(Debug)]
pub(crate) struct Fresh {
    content: Content,
    key: u64,
    used: u64,
}

impl Fresh {
    pub(crate) fn new(content: Content, seed: u64) -> Self {
        Self {
            content,
            key: xxh3_64_with_seed(b"synthetic text", seed),
            used: 0,
        }
    }

    pub(crate) fn empty_text(&self) -> Text {
        Text {
            len_tokens: 0,
            ids: match self.content {
                Content::Tokens => Ids::Tokens(Vec::new()),
                Content::Blocks { block_tokens } => Ids::Blocks {
                    block_tokens,
                    ids: Vec::new(),
                },
            },
        }
    }

    fn block(&mut self) -> u64 {
        self.used += 1;
        self.key.wrapping_add(self.used)
    }

    /// A bijection of the running number: no token comes twice within 2^32, so no two texts go on alike.
    fn token(&mut self) -> u32 {
        self.used += 1;
        scramble(scramble(self.used as u32) ^ self.key as u32)
    }
}

/// The `n`-th of all token ids in a scattered order: no two numbers give the same.
pub(crate) fn nth_token(n: u32) -> u32 {
    scramble(n)
}

/// The finaliser of MurmurHash3, a bijection of 32 bits.
fn scramble(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

/// What a model has been sent and has answered so far.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    len_tokens: u32,
    ids: Ids,
}

#[derive(Clone, Debug)]
enum Ids {
    Tokens(Vec<u32>),
    /// Ids of the full blocks; each stands for all text up to its end.
    Blocks {
        block_tokens: u32,
        ids: Vec<u64>,
    },
}

impl Text {
    pub(crate) fn len_tokens(&self) -> u32 {
        self.len_tokens
    }

    /// Goes on with `tokens` tokens that occur nowhere else.
    pub(crate) fn grow(&mut self, tokens: u32, fresh: &mut Fresh) {
        self.len_tokens += tokens;
        match &mut self.ids {
            Ids::Tokens(ids) => ids.extend((0..tokens).map(|_| fresh.token())),
            Ids::Blocks { block_tokens, ids } => {
                let full = (self.len_tokens / *block_tokens) as usize;
                ids.extend((ids.len()..full).map(|_| fresh.block()));
            }
        }
    }

    /// Forgets all but the first `tokens` tokens.
    pub(crate) fn truncate(&mut self, tokens: u32) {
        self.len_tokens = self.len_tokens.min(tokens);
        match &mut self.ids {
            Ids::Tokens(ids) => ids.truncate(tokens as usize),
            Ids::Blocks { block_tokens, ids } => ids.truncate((tokens / *block_tokens) as usize),
        }
    }

    /// The ids of the full blocks; none of a text of tokens.
    pub(crate) fn into_blocks(self) -> Vec<u64> {
        match self.ids {
            Ids::Tokens(_) => Vec::new(),
            Ids::Blocks { ids, .. } => ids,
        }
    }

    /// The body of a request whose prompt is all but the last `output_tokens` tokens, which are its output.
    pub(crate) fn body(&self, output_tokens: u32) -> Body<'_> {
        let prompt_tokens = self.len_tokens - output_tokens;
        match &self.ids {
            Ids::Tokens(ids) => {
                let (prompt, output) = ids.split_at(prompt_tokens as usize);
                Body::Tokens {
                    prompt: Cow::Borrowed(prompt),
                    output: Some(Cow::Borrowed(output)),
                }
            }
            Ids::Blocks { block_tokens, ids } => {
                let path = trace::path_blocks(prompt_tokens, output_tokens, *block_tokens) as usize;
                let (prompt, output) =
                    ids[..path].split_at((prompt_tokens / *block_tokens) as usize);
                Body::Blocks {
                    prompt: Cow::Borrowed(prompt),
                    output: Some(Cow::Borrowed(output)),
                }
            }
        }
    }
}
