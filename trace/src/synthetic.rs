//! Synthetic text: token ids or block ids of which no two are alike by accident.
//!
//! A block id is `seed << 32 | number`, so two seeds have no id in common, and no two blocks of a seed either. A token has
//! only 32 bits: those of one seed are all different (a bijection of the running number), so no two texts of a seed go on
//! alike; and the second token of every text tells the seed, so that texts of two seeds share no two tokens.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::memory::{MemoryBudget, OverBudget};
use crate::meta::Content;
use crate::row::{Body, path_blocks};

/// Hands out ids that nobody has had.
#[derive(Debug)]
pub struct FreshIds {
    content: Content,
    seed: u32,
    used: u64,
    too_long: bool,
    budget: MemoryBudget,
    over_budget: Option<OverBudget>,
}

/// The longest text: far more than any model takes, and sums of a few stay far below 2^32.
pub const LONGEST_TEXT_TOKENS: u32 = 1 << 26;

/// Why no more text can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// There are no more ids.
    #[error(
        "more than {} blocks or tokens that occur nowhere else; make the trace smaller, or write larger blocks",
        u32::MAX
    )]
    Exhausted,
    /// A text would be too long.
    #[error(
        "a prompt of more than {LONGEST_TEXT_TOKENS} tokens; make the parameters in tokens smaller"
    )]
    TooLong,
    /// All texts together would be.
    #[error(transparent)]
    OverBudget(OverBudget),
}

impl FreshIds {
    /// Ids of a seed; none was handed out yet.
    pub fn new(content: Content, seed: u32) -> Self {
        Self {
            content,
            seed,
            used: 0,
            too_long: false,
            budget: MemoryBudget::default(),
            over_budget: None,
        }
    }

    /// A text without tokens.
    pub fn empty_text(&self) -> Text {
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

    /// A piece of text that can stand in several places.
    pub fn piece(&mut self, tokens: u32) -> Piece {
        let first = self.used + 1;
        self.used += match self.content {
            Content::Tokens => u64::from(tokens),
            Content::Blocks { .. } => 0,
        };
        Piece { first, tokens }
    }

    /// Whether all that was asked for could be made. A text is not what it should be once this is an error.
    ///
    /// # Errors
    /// [`TextFault`].
    pub fn check(&self) -> Result<(), TextFault> {
        match self.over_budget {
            _ if self.used > u64::from(u32::MAX) => Err(TextFault::Exhausted),
            _ if self.too_long => Err(TextFault::TooLong),
            Some(over) => Err(TextFault::OverBudget(over)),
            None => Ok(()),
        }
    }

    /// Counts the memory of a text that is kept.
    pub fn hold(&mut self, text: &Text) {
        self.over_budget = self.over_budget.or(self.budget.hold(text.bytes()).err());
    }

    /// Counts the memory of a text that is kept no longer.
    pub fn release(&mut self, text: &Text) {
        self.budget.release(text.bytes());
    }

    /// In sequence, which packs well.
    fn block(&mut self) -> u64 {
        self.used += 1;
        self.block_of(self.used)
    }

    fn block_of(&self, number: u64) -> u64 {
        u64::from(self.seed) << 32 | (number & u64::from(u32::MAX))
    }

    fn token(&mut self) -> u32 {
        self.used += 1;
        self.token_of(self.used)
    }

    fn token_of(&self, number: u64) -> u32 {
        scramble(scramble(number as u32) ^ scramble(!self.seed))
    }
}

/// Some text, by the numbers of its tokens. Its blocks depend on where it stands, so [`Chains`] gives them.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    first: u64,
    tokens: u32,
}

/// Which blocks pieces have after which text: the same pieces in the same order are the same blocks.
#[derive(Debug, Default)]
pub struct Chains {
    nodes: HashMap<(u32, u32), Node>,
}

/// Where a text of pieces has come to.
#[derive(Clone, Copy, Debug)]
struct Node {
    number: u32,
    first_block: u64,
    blocks: u32,
}

impl Chains {
    /// Appends pieces, each with its number among all of them, to a text that is always the same. Pieces begin nowhere
    /// but here, so a text is told by the pieces in it.
    pub fn append(&mut self, text: &mut Text, pieces: &[(u32, Piece)], fresh: &mut FreshIds) {
        let mut at = 0;
        for (number, piece) in pieces {
            if piece.tokens > LONGEST_TEXT_TOKENS - text.len_tokens.min(LONGEST_TEXT_TOKENS) {
                fresh.too_long = true;
                return;
            }
            text.len_tokens += piece.tokens;
            match &mut text.ids {
                Ids::Tokens(ids) => {
                    let numbers = piece.first..piece.first + u64::from(piece.tokens);
                    ids.extend(numbers.map(|number| fresh.token_of(number)));
                }
                Ids::Blocks { block_tokens, ids } => {
                    let full = (text.len_tokens / *block_tokens) as usize;
                    let blocks = (full - ids.len()) as u32;
                    let fresh_number = self.nodes.len() as u32 + 1;
                    let node = self.nodes.entry((at, *number)).or_insert_with(|| {
                        let first_block = fresh.used + 1;
                        fresh.used += u64::from(blocks);
                        Node {
                            number: fresh_number,
                            first_block,
                            blocks,
                        }
                    });
                    let numbers = node.first_block..node.first_block + u64::from(node.blocks);
                    ids.extend(numbers.map(|number| fresh.block_of(number)));
                    at = node.number;
                }
            }
        }
    }
}

/// The `n`-th of all token ids in a scattered order: no two numbers give the same.
pub fn nth_token(n: u32) -> u32 {
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
pub struct Text {
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
    fn bytes(&self) -> u64 {
        let ids = match &self.ids {
            Ids::Tokens(ids) => size_of_val(ids.as_slice()),
            Ids::Blocks { ids, .. } => size_of_val(ids.as_slice()),
        };
        (size_of::<Self>() + ids) as u64
    }

    /// Tokens of the text.
    pub fn len_tokens(&self) -> u32 {
        self.len_tokens
    }

    /// Goes on with `tokens` tokens that occur nowhere else.
    pub fn grow(&mut self, tokens: u32, fresh: &mut FreshIds) {
        if tokens > LONGEST_TEXT_TOKENS - self.len_tokens.min(LONGEST_TEXT_TOKENS) {
            fresh.too_long = true;
            return;
        }
        let begins = self.len_tokens == 0 && tokens > 1;
        self.len_tokens += tokens;
        match &mut self.ids {
            Ids::Tokens(ids) => {
                ids.extend((0..tokens).map(|_| fresh.token()));
                if begins {
                    ids[1] = scramble(fresh.seed);
                }
            }
            Ids::Blocks { block_tokens, ids } => {
                let full = (self.len_tokens / *block_tokens) as usize;
                ids.extend((ids.len()..full).map(|_| fresh.block()));
            }
        }
    }

    /// Forgets all but the first `tokens` tokens.
    pub fn truncate(&mut self, tokens: u32) {
        self.len_tokens = self.len_tokens.min(tokens);
        match &mut self.ids {
            Ids::Tokens(ids) => ids.truncate(tokens as usize),
            Ids::Blocks { block_tokens, ids } => ids.truncate((tokens / *block_tokens) as usize),
        }
    }

    /// Forgets what lies between the first `pinned` and the last `window` tokens. The window keeps its tokens, but its
    /// blocks have another prefix now, so they are other blocks.
    pub fn slide(&mut self, pinned: u32, window: u32, fresh: &mut FreshIds) {
        if pinned + window >= self.len_tokens {
            return;
        }
        match &mut self.ids {
            Ids::Tokens(ids) => {
                ids.drain(pinned as usize..(self.len_tokens - window) as usize);
                self.len_tokens = pinned + window;
            }
            Ids::Blocks { .. } => {
                self.truncate(pinned);
                self.grow(window, fresh);
            }
        }
    }

    /// Whether a prompt of the first `prompt_tokens` tokens of `self` begins with the whole path of a request that left
    /// `path`, without its last token, in the cache.
    pub fn begins_with(&self, prompt_tokens: u32, path: &Self, path_tokens: u32) -> bool {
        if path_tokens > prompt_tokens {
            return false;
        }
        match (&self.ids, &path.ids) {
            (Ids::Tokens(own), Ids::Tokens(other)) => {
                own[..path_tokens as usize] == other[..path_tokens as usize]
            }
            (Ids::Blocks { block_tokens, ids }, Ids::Blocks { ids: other, .. }) => {
                // An id stands for its whole prefix.
                let last = (path_tokens / block_tokens) as usize;
                last == 0 || ids[last - 1] == other[last - 1]
            }
            _ => false,
        }
    }

    /// The ids of the full blocks; none of a text of tokens.
    pub fn blocks(&self) -> &[u64] {
        match &self.ids {
            Ids::Tokens(_) => &[],
            Ids::Blocks { ids, .. } => ids,
        }
    }

    /// The ids of the full blocks; none of a text of tokens.
    pub fn into_blocks(self) -> Vec<u64> {
        match self.ids {
            Ids::Tokens(_) => Vec::new(),
            Ids::Blocks { ids, .. } => ids,
        }
    }

    /// The body of a request whose prompt is all but the last `output_tokens` tokens, which are its output.
    pub fn body(&self, output_tokens: u32, output_known: bool) -> Body<'_> {
        let prompt_tokens = self.len_tokens - output_tokens;
        match &self.ids {
            Ids::Tokens(ids) => {
                let (prompt, output) = ids.split_at(prompt_tokens as usize);
                Body::Tokens {
                    prompt: Cow::Borrowed(prompt),
                    output: output_known.then_some(Cow::Borrowed(output)),
                }
            }
            Ids::Blocks { block_tokens, ids } => {
                let path = path_blocks(prompt_tokens, output_tokens, *block_tokens) as usize;
                let (prompt, output) =
                    ids[..path].split_at((prompt_tokens / *block_tokens) as usize);
                Body::Blocks {
                    prompt: Cow::Borrowed(prompt),
                    output: output_known.then_some(Cow::Borrowed(output)),
                }
            }
        }
    }
}
