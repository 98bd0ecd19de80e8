//! Traces that can be shown to others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hasher;
use std::path::Path;

use siphasher::sip::SipHasher24;
use trace::{Body, Content, Meta, Provenance, Row, TraceReader, TraceWriter, path_blocks};

use super::rows::{Done, Renumber};
use crate::error::ImportError;

/// Replaces what could tell whose a trace is: block ids become keyed hashes (SipHash-2-4; who does not know the salt cannot
/// tell which text a block was, nor compare with another trace), tokens become such block ids of `block_tokens` tokens,
/// sessions, requests, tenants and templates are numbered in the order of their coming, kinds and tools are numbered names,
/// the first arrival is at 0, and where the trace comes from is not said. Lengths, times and sharing stay: they are what
/// the trace is for, and they can still tell something to who knows what to look for.
///
/// # Errors
/// Where the salt is empty, `block_tokens` contradicts the trace, two ids collide (another salt helps), the trace cannot
/// be read or the output cannot be written.
pub fn anonymise(
    input: &Path,
    out: &Path,
    salt: &str,
    block_tokens: Option<u32>,
) -> Result<Done, ImportError> {
    if salt.is_empty() {
        return Err(refused("salt", "empty", "a secret"));
    }
    let mut reader = TraceReader::open(input, None)?;
    let block_tokens = match (reader.meta().content, block_tokens) {
        (Content::Blocks { block_tokens }, Some(asked)) if asked != block_tokens => {
            return Err(refused(
                "block size",
                &asked.to_string(),
                &block_tokens.to_string(),
            ));
        }
        (Content::Blocks { block_tokens }, _) => block_tokens,
        (Content::Tokens, asked) => asked.unwrap_or(trace::DEFAULT_BLOCK_TOKENS),
    };
    if block_tokens == 0 {
        return Err(refused("block size", "0", "at least 1"));
    }
    let meta = Meta {
        content: Content::Blocks { block_tokens },
        provenance: Provenance {
            generator: Some("trace-gen anonymise".to_owned()),
            ..Provenance::default()
        },
    };
    let mut writer = TraceWriter::create(out, &meta)?;
    let mut mask = Mask::new(salt, block_tokens);
    let mut done = Done::default();
    while let Some(row) = reader.next_row()? {
        done.read += 1;
        writer.write(&mask.row(row)?)?;
    }
    done.written = writer.finish()?;
    Ok(done)
}

fn refused(name: &'static str, found: &str, expected: &str) -> ImportError {
    ImportError::Parameter {
        name,
        found: found.to_owned(),
        expected: expected.to_owned(),
    }
}

struct Mask {
    key: [u8; 16],
    block_tokens: u32,
    requests: Renumber,
    sessions: Numbers<u64>,
    tenants: Numbers<u32>,
    templates: Numbers<u64>,
    kinds: Numbers<String>,
    tools: Numbers<String>,
    /// Where each masked id came from: two ids may not become one.
    sources: HashMap<u64, u64>,
    base_us: Option<i64>,
}

/// Numbers by first appearance.
struct Numbers<T>(HashMap<T, u64>);

impl<T: std::hash::Hash + Eq> Numbers<T> {
    fn of(&mut self, value: T) -> u64 {
        let fresh = self.0.len() as u64;
        *self.0.entry(value).or_insert(fresh)
    }
}

impl Mask {
    fn new(salt: &str, block_tokens: u32) -> Self {
        // Two hashes of the salt under different keys make the key.
        let half = |name: u64| {
            let mut hasher = SipHasher24::new_with_keys(name, !name);
            hasher.write(salt.as_bytes());
            hasher.finish().to_le_bytes()
        };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&half(1));
        key[8..].copy_from_slice(&half(2));
        Self {
            key,
            block_tokens,
            requests: Renumber::default(),
            sessions: Numbers(HashMap::new()),
            tenants: Numbers(HashMap::new()),
            templates: Numbers(HashMap::new()),
            kinds: Numbers(HashMap::new()),
            tools: Numbers(HashMap::new()),
            sources: HashMap::new(),
            base_us: None,
        }
    }

    fn row(&mut self, row: Row<'_>) -> Result<Row<'static>, ImportError> {
        let mut row = row.into_owned();
        self.requests.apply(&mut row);
        row.session_id = self.sessions.of(row.session_id);
        row.tenant = self.tenants.of(row.tenant) as u32;
        row.hints.template_id = row.hints.template_id.map(|id| self.templates.of(id));
        row.arrival_us -= *self.base_us.get_or_insert(row.arrival_us);
        if !row.kind.is_empty() {
            row.kind = Cow::Owned(format!("kind-{}", self.kinds.of(row.kind.into_owned())));
        }
        row.tool = row
            .tool
            .map(|tool| Cow::Owned(format!("tool-{}", self.tools.of(tool.into_owned()))));
        row.body = self.body(&row)?;
        Ok(row)
    }

    fn body(&mut self, row: &Row<'_>) -> Result<Body<'static>, ImportError> {
        let (prompt, output) = match &row.body {
            Body::Blocks { prompt, output } => (
                self.ids(prompt)?,
                output.as_ref().map(|output| self.ids(output)).transpose()?,
            ),
            Body::Tokens { prompt, output } => {
                let known = output.as_deref();
                let end = match known {
                    Some(_) => path_blocks(row.prompt_tokens, row.output_tokens, self.block_tokens),
                    None => u64::from(row.prompt_tokens / self.block_tokens),
                };
                let tokens: Vec<u32> = prompt
                    .iter()
                    .chain(known.unwrap_or_default())
                    .copied()
                    .collect();
                let mut path = self.chain(&tokens, end as usize);
                let after = path.split_off((row.prompt_tokens / self.block_tokens) as usize);
                (path, known.map(|_| after))
            }
        };
        Ok(Body::Blocks {
            prompt: Cow::Owned(prompt),
            output: output.map(Cow::Owned),
        })
    }

    fn ids(&mut self, ids: &[u64]) -> Result<Vec<u64>, ImportError> {
        ids.iter()
            .map(|&id| {
                let mut hasher = SipHasher24::new_with_key(&self.key);
                hasher.write_u64(id);
                let masked = hasher.finish();
                match *self.sources.entry(masked).or_insert(id) {
                    source if source == id => Ok(masked),
                    _ => Err(refused(
                        "salt",
                        "one that makes two blocks one",
                        "another salt",
                    )),
                }
            })
            .collect()
    }

    /// Each id is the hash of the one before and the block's tokens. The trace's own check of parents finds collisions
    /// when it is loaded.
    fn chain(&self, tokens: &[u32], blocks: usize) -> Vec<u64> {
        let mut before = 0;
        let each = tokens.chunks_exact(self.block_tokens as usize).take(blocks);
        each.map(|block| {
            let mut hasher = SipHasher24::new_with_key(&self.key);
            hasher.write_u64(before);
            for token in block {
                hasher.write_u32(*token);
            }
            before = hasher.finish();
            before
        })
        .collect()
    }
}
