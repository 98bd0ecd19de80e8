//! Text into tokens.

use std::borrow::Cow;

use params::{Domain, Param, Params};
use tiktoken_rs::CoreBPE;
use trace::synthetic::nth_token;
use trace::{Body, Row};

/// How text becomes tokens.
pub(crate) const TOKENIZER: Param = Param {
    name: "tokenizer",
    help: "What makes tokens of text: its UTF-8 bytes, or a vocabulary of OpenAI's (built in, no download).",
    domain: Domain::Choice(&[
        "bytes",
        "cl100k_base",
        "o200k_base",
        "o200k_harmony",
        "p50k_base",
        "r50k_base",
    ]),
    default: "bytes",
};

/// Whether a replay knows the tokens of outputs, and so keeps their blocks.
pub(crate) const NO_OUTPUTS: Param = Param {
    name: "no-outputs",
    help: "Leave out the outputs' tokens, only their count stays: they are not cached then.",
    domain: Domain::Flag,
    default: "",
};

/// Makes token rows of texts, as the options say.
pub(crate) struct Texts {
    vocabulary: Option<&'static CoreBPE>,
    outputs: bool,
}

impl Texts {
    pub(crate) fn new(params: &Params) -> Self {
        Self {
            vocabulary: match params.get(TOKENIZER.name) {
                Some("cl100k_base") => Some(tiktoken_rs::cl100k_base_singleton()),
                Some("o200k_base") => Some(tiktoken_rs::o200k_base_singleton()),
                Some("o200k_harmony") => Some(tiktoken_rs::o200k_harmony_singleton()),
                Some("p50k_base") => Some(tiktoken_rs::p50k_base_singleton()),
                Some("r50k_base") => Some(tiktoken_rs::r50k_base_singleton()),
                _ => None,
            },
            outputs: !params.flag(NO_OUTPUTS.name),
        }
    }

    /// The tokens of a text. Names of special tokens in it are text like any other.
    pub(crate) fn tokens(&self, text: &str) -> Vec<u32> {
        match self.vocabulary {
            None => text.bytes().map(u32::from).collect(),
            Some(vocabulary) => vocabulary.encode_ordinary(text),
        }
    }

    /// Fills in lengths and tokens.
    pub(crate) fn fill(
        &self,
        row: &mut Row<'static>,
        prompt: Vec<u32>,
        output: Vec<u32>,
    ) -> Result<(), String> {
        let count = |tokens: &[u32]| {
            u32::try_from(tokens.len())
                .map_err(|_| format!("{} tokens; expected at most {}", tokens.len(), u32::MAX))
        };
        row.prompt_tokens = count(&prompt)?;
        row.output_tokens = count(&output)?;
        row.body = Body::Tokens {
            prompt: Cow::Owned(prompt),
            output: self.outputs.then_some(Cow::Owned(output)),
        };
        Ok(())
    }
}

/// Hands out synthetic tokens by number, every number once: no two texts made of them share a token by accident.
#[derive(Default)]
pub(crate) struct Numbers {
    used: u32,
}

impl Numbers {
    /// So many numbers that nobody else gets: the first of them.
    pub(crate) fn take(&mut self, tokens: u32) -> Result<u32, String> {
        let first = self.used;
        self.used = first
            .checked_add(tokens)
            .ok_or("more than 2^32 distinct tokens")?;
        Ok(first)
    }

    /// So many tokens that nobody else gets.
    pub(crate) fn fresh(
        &mut self,
        tokens: u32,
    ) -> Result<impl Iterator<Item = u32> + use<>, String> {
        let first = self.take(tokens)?;
        Ok((first..first + tokens).map(nth_token))
    }
}
