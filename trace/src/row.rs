//! One row of a trace file.

use std::borrow::Cow;

use policy_api::Hints;

/// One request as it stands in the file; borrowed where a reader hands it out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// The request's id.
    pub request_id: u64,
    /// Arrival in microseconds on the trace's clock, from 0 to [`crate::LATEST_ARRIVAL_US`], never before the row above.
    pub arrival_us: i64,
    /// The session the request belongs to.
    pub session_id: u64,
    /// Position within the session.
    pub step: u32,
    /// The request whose end made this one possible.
    pub parent_request: Option<u64>,
    /// What sort of request it is; empty where unknown.
    pub kind: Cow<'a, str>,
    /// Tenant.
    pub tenant: u32,
    /// The tool that this request's output calls.
    pub tool: Option<Cow<'a, str>>,
    /// Tokens of the prompt (`S`).
    pub prompt_tokens: u32,
    /// Tokens of the output (`O`).
    pub output_tokens: u32,
    /// What prompt and output consist of.
    pub body: Body<'a>,
    /// Declared hints.
    pub hints: Hints,
}

/// What prompt and output consist of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Token ids.
    Tokens {
        /// The prompt, `prompt_tokens` ids.
        prompt: Cow<'a, [u32]>,
        /// The output, `output_tokens` ids; `None` where unknown.
        output: Option<Cow<'a, [u32]>>,
    },
    /// Ids of full blocks.
    Blocks {
        /// The prompt's `n` full blocks.
        prompt: Cow<'a, [u64]>,
        /// The `m - n` blocks of the path after them; `None` where unknown.
        output: Option<Cow<'a, [u64]>>,
    },
}

impl Default for Body<'_> {
    fn default() -> Self {
        Self::Blocks {
            prompt: Cow::default(),
            output: None,
        }
    }
}

impl Row<'_> {
    /// The same row with everything owned.
    pub fn into_owned(self) -> Row<'static> {
        Row {
            kind: Cow::Owned(self.kind.into_owned()),
            tool: self.tool.map(|tool| Cow::Owned(tool.into_owned())),
            body: self.body.into_owned(),
            ..self
        }
    }
}

impl Body<'_> {
    /// The same body with everything owned.
    pub fn into_owned(self) -> Body<'static> {
        match self {
            Self::Tokens { prompt, output } => Body::Tokens {
                prompt: Cow::Owned(prompt.into_owned()),
                output: output.map(|output| Cow::Owned(output.into_owned())),
            },
            Self::Blocks { prompt, output } => Body::Blocks {
                prompt: Cow::Owned(prompt.into_owned()),
                output: output.map(|output| Cow::Owned(output.into_owned())),
            },
        }
    }
}

/// Full blocks of a prompt of `prompt_tokens` tokens (`n`).
pub fn prompt_blocks(prompt_tokens: u32, block_tokens: u32) -> u32 {
    prompt_tokens / block_tokens
}

/// Blocks of a path once its request is done and its output known (`m`): the last sampled token is never fed back, so
/// it has no KV.
pub fn path_blocks(prompt_tokens: u32, output_tokens: u32, block_tokens: u32) -> u64 {
    let kept = u64::from(prompt_tokens) + u64::from(output_tokens.max(1)) - 1;
    kept / u64::from(block_tokens)
}
