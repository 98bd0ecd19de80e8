//! A request: as a loaded trace holds it, and as a policy may see it.

use core::ops::Range;

use crate::{BlockId, RequestIndex, Tick, Work};

/// One request of a loaded trace. Its path is a slice of the trace's arena of block ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The trace's own id of the request.
    pub request_id: u64,
    /// Arrival in microseconds on the trace's clock.
    pub arrival_us: i64,
    /// The session the request belongs to.
    pub session_id: u64,
    /// The request whose end made this one possible.
    pub parent_request: Option<u64>,
    /// Position within the session, 0 where the trace does not say.
    pub step: u32,
    /// Kind, as an index into the trace's names; 0 where the trace does not say.
    pub kind: u16,
    /// The tool that the output calls, as an index into the trace's names.
    pub tool: Option<u16>,
    /// Tenant, 0 where the trace does not say.
    pub tenant: u32,
    /// Tokens of the prompt (`S`).
    pub prompt_tokens: u32,
    /// Tokens of the output (`O`).
    pub output_tokens: u32,
    /// Where the path begins in the arena of block ids.
    pub path_start: usize,
    /// Blocks of the path once the request is done (`m`): prompt, then output where it is known.
    pub path_blocks: u32,
    /// Full blocks of the prompt (`n`).
    pub prompt_blocks: u32,
    /// Leading blocks of the path that earlier requests touched: the match of a cache without limits.
    pub seen_blocks: u32,
}

impl Request {
    /// Where the path lies in the arena of block ids.
    pub fn path_range(&self) -> Range<usize> {
        self.path_start..self.path_start + self.path_blocks as usize
    }

    /// Blocks that can count as a hit at most: one token is always computed, for its logits.
    pub fn usable_blocks(&self, block_tokens: u32) -> u32 {
        self.prompt_tokens.saturating_sub(1) / block_tokens
    }
}

/// Declared hints of a request. Only policies on the declared track may read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Scheduling priority, larger is more important.
    pub priority: Option<u32>,
    /// How long the priority lasts, in microseconds.
    pub priority_ttl_us: Option<u64>,
    /// Identity of the prompt template.
    pub template_id: Option<u64>,
    /// Leading prompt tokens that come from the template.
    pub template_tokens: Option<u32>,
    /// Later requests that will read this whole path.
    pub remaining_uses: Option<u32>,
    /// Steps until this request's agent runs again.
    pub steps_to_next: Option<u32>,
}

/// One request as a policy may see it: the past and the present, nothing of the future.
#[derive(Clone, Copy, Debug)]
pub struct RequestView<'a> {
    /// Its position in the trace.
    pub index: RequestIndex,
    /// What the cache's clock says.
    pub now: Tick,
    /// Arrival on the trace's clock, in microseconds.
    pub arrival_us: i64,
    /// Session.
    pub session: u64,
    /// Step within the session, 0 where the trace does not say.
    pub step: u32,
    /// Kind, as an index into the trace's names; 0 where the trace does not say.
    pub kind: u16,
    /// The tool that the output calls, as an index into the trace's names.
    pub tool: Option<u16>,
    /// Tenant.
    pub tenant: u32,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the output.
    pub output_tokens: u32,
    /// Blocks of the whole path, the output's included where it is known.
    pub path: &'a [BlockId],
    /// Leading blocks of the path that are full blocks of the prompt.
    pub prompt_blocks: u32,
    /// Leading blocks of the path that were resident when the request came.
    pub held_blocks: u32,
    /// Blocks that count as a prefix hit.
    pub hit_blocks: u32,
    /// The prefill that the request costs, without what it hits.
    pub prefill: Work,
    /// Declared hints, where the trace has them.
    pub hints: Option<&'a Hints>,
}
