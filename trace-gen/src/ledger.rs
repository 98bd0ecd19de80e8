//! The ledger of one agent: 20 steps whose every prompt repeats the one before it and adds 300 tokens.
//!
//! The prompt of step k has 2000 + 300 (k - 1) tokens. The output of a step is 80 tokens, which are the first of the 300
//! that the next prompt adds (the call), followed by 220 of the tool's result. In all 97,000 prompt tokens are submitted,
//! of which 7,700 are distinct.

use std::borrow::Cow;
use std::path::Path;

use trace::{Body, Content, Meta, Provenance, Row, TraceWriter};

use crate::error::GenError;

const STEPS: u32 = 20;
const FIRST_PROMPT_TOKENS: u32 = 2_000;
const ADDED_TOKENS: u32 = 300;
const OUTPUT_TOKENS: u32 = 80;
const STEP_US: i64 = 5_000_000;

/// Writes the ledger as a token trace; returns the number of requests.
///
/// # Errors
/// Where the output cannot be written.
pub fn write(out: &Path) -> Result<u64, GenError> {
    let meta = Meta {
        content: Content::Tokens,
        provenance: Provenance {
            name: Some("ledger".to_owned()),
            generator: Some("trace-gen ledger".to_owned()),
            ..Provenance::default()
        },
    };
    let last_prompt_tokens = FIRST_PROMPT_TOKENS + ADDED_TOKENS * (STEPS - 1);
    let transcript: Vec<u32> = (0..last_prompt_tokens + OUTPUT_TOKENS).collect();
    let mut writer = TraceWriter::create(out, &meta)?;
    for step in 0..STEPS {
        let prompt_tokens = FIRST_PROMPT_TOKENS + ADDED_TOKENS * step;
        let (prompt, rest) = transcript.split_at(prompt_tokens as usize);
        let last = step + 1 == STEPS;
        writer.write(&Row {
            request_id: u64::from(step),
            arrival_us: STEP_US * i64::from(step),
            step,
            parent_request: step.checked_sub(1).map(u64::from),
            kind: Cow::Borrowed("step"),
            tool: (!last).then_some(Cow::Borrowed("tool")),
            prompt_tokens,
            output_tokens: OUTPUT_TOKENS,
            body: Body::Tokens {
                prompt: Cow::Borrowed(prompt),
                output: Some(Cow::Borrowed(&rest[..OUTPUT_TOKENS as usize])),
            },
            ..Row::default()
        })?;
    }
    Ok(writer.finish()?)
}
