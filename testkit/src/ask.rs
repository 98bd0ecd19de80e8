//! Requests as tests write them.

use std::fmt;

use policy_api::{Hints, Request};
use proptest::prelude::*;

/// What names the blocks of a path: a string, a letter per block, or numbers.
pub trait Labels {
    /// A label per block.
    fn labels(&self) -> Vec<u32>;
}

impl Labels for str {
    fn labels(&self) -> Vec<u32> {
        self.chars().map(u32::from).collect()
    }
}

impl Labels for String {
    fn labels(&self) -> Vec<u32> {
        self.as_str().labels()
    }
}

impl Labels for [u32] {
    fn labels(&self) -> Vec<u32> {
        self.to_vec()
    }
}

impl<const N: usize> Labels for [u32; N] {
    fn labels(&self) -> Vec<u32> {
        self.to_vec()
    }
}

impl Labels for Vec<u32> {
    fn labels(&self) -> Vec<u32> {
        self.clone()
    }
}

impl<L: Labels + ?Sized> Labels for &L {
    fn labels(&self) -> Vec<u32> {
        (**self).labels()
    }
}

/// One request. Unless it says otherwise, all its path is prompt, its prompt has one token more so that every block can hit, and
/// it arrives one second after the one before.
#[derive(Clone, Default)]
pub struct Ask {
    pub(crate) labels: Vec<u32>,
    pub(crate) output_blocks: u32,
    pub(crate) extra_tokens: u32,
    pub(crate) arrival_us: Option<i64>,
    /// What it says of session, kind and so on.
    pub(crate) request: Request,
    pub(crate) hints: Option<Hints>,
}

/// A request for a path.
pub fn ask(path: impl Labels) -> Ask {
    Ask {
        labels: path.labels(),
        extra_tokens: 1,
        ..Ask::default()
    }
}

/// Requests that say nothing but their path.
pub fn asks<L: Labels>(paths: &[L]) -> Vec<Ask> {
    paths.iter().map(ask).collect()
}

impl Ask {
    /// Tokens of the prompt beyond its last full block.
    pub fn extra_tokens(mut self, tokens: u32) -> Self {
        self.extra_tokens = tokens;
        self
    }

    /// A prompt that ends with its last block, which so cannot hit.
    pub fn aligned(self) -> Self {
        self.extra_tokens(0)
    }

    /// How many of its last blocks are output.
    pub fn output_blocks(mut self, blocks: u32) -> Self {
        self.output_blocks = blocks;
        self
    }

    /// When it arrives, in seconds.
    pub fn at_seconds(mut self, seconds: f64) -> Self {
        self.arrival_us = Some((seconds * 1e6) as i64);
        self
    }

    /// Its session, and the step of it.
    pub fn session(mut self, session_id: u64, step: u32) -> Self {
        self.request.session_id = session_id;
        self.request.step = step;
        self
    }

    /// Its kind.
    pub fn kind(mut self, kind: u16) -> Self {
        self.request.kind = kind;
        self
    }

    /// The tool that it calls.
    pub fn tool(mut self, tool: u16) -> Self {
        self.request.tool = Some(tool);
        self
    }

    /// Tokens of its output.
    pub fn output_tokens(mut self, output_tokens: u32) -> Self {
        self.request.output_tokens = output_tokens;
        self
    }

    /// Its hints.
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = Some(hints);
        self
    }
}

/// Up to 39 requests whose paths are over a small alphabet, so that they share, extend and diverge often. They may have output
/// blocks, and end anywhere in a block of four tokens.
pub fn any_asks() -> impl Strategy<Value = Vec<Ask>> {
    let path = prop::collection::vec(0u32..3, 0..7);
    let one = (path, 0u32..3, 0u32..4).prop_map(|(labels, output, extra_tokens)| {
        let output = output.min(labels.len() as u32);
        ask(labels).output_blocks(output).extra_tokens(extra_tokens)
    });
    prop::collection::vec(one, 1..40)
}

impl fmt::Debug for Ask {
    /// What is not as in most requests; proptest prints dozens of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            labels,
            output_blocks,
            extra_tokens,
            hints,
            ..
        } = self;
        write!(f, "ask({labels:?})")?;
        if *output_blocks > 0 {
            write!(f, ".output_blocks({output_blocks})")?;
        }
        if *extra_tokens != 1 {
            write!(f, ".extra_tokens({extra_tokens})")?;
        }
        if self.request != Request::default() {
            write!(f, " of {:?}", self.request)?;
        }
        if let Some(hints) = hints {
            write!(f, ".hints({hints:?})")?;
        }
        Ok(())
    }
}
