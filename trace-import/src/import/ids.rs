//! Block ids of other formats: which are of full blocks, whether they stand for their prefix, and chaining where not.

use std::borrow::Cow;

use params::{Domain, Param, Params};
use trace::synthetic::{FreshIds, Text};
use trace::{Body, Request, Row, WorkloadBuilder, prompt_blocks};
use xxhash_rust::xxh3::Xxh3Default;

use super::format::ImportJob;
use super::options::option_fault;
use super::sink::{RowSink, SourceRow, invented_length};
use crate::error::ImportError;
use crate::note::Action;

/// What ids stand for.
pub(crate) const IDS: Param = Param {
    name: "ids",
    help: "Whether an id stands for its block and all before it, or for its block's content only (chained then); auto \
            tells by whether any id follows two different ones.",
    domain: Domain::Choice(&["auto", "prefix", "content"]),
    default: "auto",
};

/// How to invent an identity for prompts of which only the length is known.
pub(crate) const IDENTITY: Param = Param {
    name: "identity",
    help: "How to invent what the format does not have: `unique` (no prompt shares anything) or `shared:N` (all begin \
            with the same N tokens).",
    domain: Domain::Text("unique|shared:N"),
    default: "",
};

/// The ids of a prompt's full blocks, and whether that of a partial last block was dropped.
pub(crate) fn full_blocks(
    mut ids: Vec<u64>,
    prompt_tokens: u32,
    block_tokens: u32,
) -> Result<(Vec<u64>, bool), String> {
    let full = prompt_blocks(prompt_tokens, block_tokens) as usize;
    let all = prompt_tokens.div_ceil(block_tokens) as usize;
    if ids.len() != full && ids.len() != all {
        return Err(format!(
            "{} hash_ids; expected {full} (full blocks) or {all} (with the partial last one) for {prompt_tokens} tokens \
             in blocks of {block_tokens}",
            ids.len()
        ));
    }
    let dropped = ids.len() > full;
    ids.truncate(full);
    Ok((ids, dropped))
}

/// Chains the ids of all rows where they do not stand for their prefixes.
pub(crate) fn settle(sink: &mut RowSink, params: &Params, block_tokens: u32) {
    let (action, why) = match params.get(IDS.name) {
        Some("prefix") => return,
        Some("content") => (Action::Format, "as asked".to_owned()),
        _ => match contradiction(sink.rows(), block_tokens) {
            None => return,
            Some(fault) => (
                Action::Changed,
                format!("because {fault}; say --ids content if that is what they are"),
            ),
        },
    };
    sink.note(
        action,
        format!("ids taken as names of content and chained, {why}"),
    );
    for source in sink.rows() {
        if let Body::Blocks { prompt, .. } = &mut source.row.body {
            chain(prompt.to_mut());
        }
    }
}

/// Where an id follows two different ones, if any does.
fn contradiction(rows: &[SourceRow], block_tokens: u32) -> Option<String> {
    let mut builder = WorkloadBuilder::new(block_tokens);
    rows.iter().find_map(|SourceRow { location, row }| {
        let Body::Blocks { prompt, .. } = &row.body else {
            return None;
        };
        let fault = builder.push(Request::default(), prompt).err()?;
        Some(match fault {
            trace::BuildError::TwoParents { id, position, .. } => {
                format!("id {id} at position {position} ({location}) followed another id before")
            }
            other => other.to_string(),
        })
    })
}

/// Makes every id stand for all before it.
fn chain(ids: &mut [u64]) {
    let mut before = None;
    for id in ids {
        let mut hasher = Xxh3Default::new();
        if let Some(before) = before {
            hasher.update(&u64::to_le_bytes(before));
        }
        hasher.update(&id.to_le_bytes());
        *id = hasher.digest();
        before = Some(*id);
    }
}

/// Prompts of which only the length is known.
pub(crate) struct Invented {
    fresh: FreshIds,
    shared: Text,
}

impl Invented {
    /// As the option says; an error where it says nothing.
    pub(crate) fn new(job: &ImportJob<'_>, block_tokens: u32) -> Result<Self, ImportError> {
        let shared = match job.params.get(IDENTITY.name) {
            None => {
                return Err(ImportError::Input {
                    path: job.input.to_owned(),
                    problem: "lengths and arrivals only: there is no prefix identity in it, so nothing to replay. Say how \
                              to invent one: --identity unique (no prompt shares anything) or --identity shared:N (all \
                              begin with the same N tokens)"
                        .to_owned(),
                });
            }
            Some("unique") => Some(0),
            Some(text) => text.strip_prefix("shared:").and_then(|n| n.parse().ok()),
        };
        let asked = job.params.get(IDENTITY.name).unwrap_or_default();
        let shared = shared.and_then(|tokens| invented_length("shared", tokens).ok());
        let shared = shared.ok_or_else(|| option_fault(&IDENTITY, asked))?;
        let content = trace::Content::Blocks { block_tokens };
        let mut fresh = FreshIds::new(content, 0);
        let mut text = fresh.empty_text();
        text.grow(shared, &mut fresh);
        Ok(Self {
            fresh,
            shared: text,
        })
    }

    /// Gives a row a prompt of its length.
    pub(crate) fn fill(&mut self, row: &mut Row<'static>) -> Result<(), String> {
        invented_length("prompt_tokens", u64::from(row.prompt_tokens))?;
        let mut prompt = self.shared.clone();
        prompt.truncate(row.prompt_tokens);
        prompt.grow(row.prompt_tokens - prompt.len_tokens(), &mut self.fresh);
        row.body = Body::Blocks {
            prompt: Cow::Owned(prompt.into_blocks()),
            output: None,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chained_ids_stand_for_their_prefix() {
        let (mut a, mut b, mut c) = (vec![1, 2, 3], vec![1, 2, 4], vec![2, 2, 3]);
        for ids in [&mut a, &mut b, &mut c] {
            chain(ids);
        }
        assert_eq!(a[..2], b[..2]);
        assert_ne!(a[2], b[2]);
        assert!(a.iter().all(|id| !c.contains(id)));
    }

    #[test]
    fn the_partial_block_may_have_an_id_or_not() {
        assert_eq!(full_blocks(vec![1, 2], 9, 4), Ok((vec![1, 2], false)));
        assert_eq!(full_blocks(vec![1, 2, 3], 9, 4), Ok((vec![1, 2], true)));
        assert!(full_blocks(vec![1], 9, 4).is_err());
        assert!(full_blocks(vec![1, 2, 3], 8, 4).is_err());
    }
}
