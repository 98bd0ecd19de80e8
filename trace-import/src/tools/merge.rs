//! Several traces side by side.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use trace::{
    Body, Content, Meta, Provenance, Request, Row, TraceReader, TraceWriter, WorkloadBuilder,
};

use super::rows::Done;
use crate::error::ImportError;

/// Whether equal block ids of two traces are the same block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeIds {
    /// They are different: every trace gets ids of its own.
    Separate,
    /// They are the same. Tokens always are what they are.
    Shared,
}

/// Merges traces by arrival; of equal arrivals those of an earlier input come first. Sessions, templates and tenants of two
/// inputs are different ones.
///
/// # Errors
/// Where there is no input, contents or block sizes differ, an input cannot be read or the output cannot be written.
pub fn merge(inputs: &[PathBuf], out: &Path, ids: MergeIds) -> Result<Done, ImportError> {
    let mut readers = Vec::new();
    for input in inputs {
        readers.push(TraceReader::open(input, None)?);
    }
    let content = same_content(inputs, &readers)?;
    let meta = Meta {
        content,
        provenance: Provenance {
            name: Some("merged".to_owned()),
            generator: Some(format!("trace-gen merge of {} traces", inputs.len())),
            ..Provenance::default()
        },
    };
    let mut writer = TraceWriter::create(out, &meta)?;
    let mut names = Names::default();
    let mut paths = SharedPaths::new(content, ids);
    let mut heads = Vec::new();
    for reader in &mut readers {
        heads.push(next(reader)?);
    }
    let mut done = Done::default();
    while let Some(input) = earliest(&heads) {
        let Some(mut row) = heads[input].take() else {
            break;
        };
        heads[input] = next(&mut readers[input])?;
        names.apply(input, &mut row, ids);
        paths.check(&inputs[input], &row)?;
        writer.write(&row)?;
        done.read += 1;
    }
    done.written = writer.finish()?;
    Ok(done)
}

fn next(reader: &mut TraceReader) -> Result<Option<Row<'static>>, ImportError> {
    Ok(reader.next_row()?.map(Row::into_owned))
}

fn earliest(heads: &[Option<Row<'_>>]) -> Option<usize> {
    let waiting = heads.iter().enumerate();
    let waiting = waiting.filter_map(|(input, head)| Some((head.as_ref()?.arrival_us, input)));
    waiting.min().map(|(_, input)| input)
}

fn same_content(inputs: &[PathBuf], readers: &[TraceReader]) -> Result<Content, ImportError> {
    let Some(first) = readers.first() else {
        return Err(ImportError::Parameter {
            name: "number of traces to merge",
            found: "0".to_owned(),
            expected: "at least 1".to_owned(),
        });
    };
    let content = first.meta().content;
    match readers
        .iter()
        .position(|reader| reader.meta().content != content)
    {
        None => Ok(content),
        Some(other) => Err(ImportError::Input {
            path: inputs[other].clone(),
            problem: format!(
                "holds {:?}; expected {content:?}, as {}",
                readers[other].meta().content,
                inputs[0].display()
            ),
        }),
    }
}

/// Checks that ids which several inputs share stand for the same prefix in all of them.
struct SharedPaths(Option<WorkloadBuilder>);

impl SharedPaths {
    fn new(content: Content, ids: MergeIds) -> Self {
        Self(match (content, ids) {
            (Content::Blocks { block_tokens }, MergeIds::Shared) => {
                Some(WorkloadBuilder::new(block_tokens))
            }
            _ => None,
        })
    }

    fn check(&mut self, input: &Path, row: &Row<'_>) -> Result<(), ImportError> {
        let (Some(builder), Body::Blocks { prompt, output }) = (&mut self.0, &row.body) else {
            return Ok(());
        };
        let path = [prompt, output.as_deref().unwrap_or_default()].concat();
        builder
            .push(Request::default(), &path)
            .map_err(|fault| ImportError::Input {
                path: input.to_owned(),
                problem: format!("{fault}; ids of traces that were made apart cannot be shared"),
            })
    }
}

/// Things of several inputs, numbered together.
#[derive(Default)]
struct Names {
    requests: HashMap<(usize, u64), u64>,
    sessions: HashMap<(usize, u64), u64>,
    templates: HashMap<(usize, u64), u64>,
    tenants: HashMap<(usize, u64), u64>,
    blocks: HashMap<(usize, u64), u64>,
}

impl Names {
    fn apply(&mut self, input: usize, row: &mut Row<'_>, ids: MergeIds) {
        let number = |names: &mut HashMap<(usize, u64), u64>, id| {
            let fresh = names.len() as u64;
            *names.entry((input, id)).or_insert(fresh)
        };
        row.request_id = number(&mut self.requests, row.request_id);
        let parent = row.parent_request;
        row.parent_request = parent.and_then(|parent| self.requests.get(&(input, parent)).copied());
        row.session_id = number(&mut self.sessions, row.session_id);
        row.tenant = number(&mut self.tenants, u64::from(row.tenant)) as u32;
        if let Some(template) = &mut row.hints.template_id {
            *template = number(&mut self.templates, *template);
        }
        if let (MergeIds::Separate, Body::Blocks { prompt, output }) = (ids, &mut row.body) {
            let output = output.iter_mut().flat_map(Cow::to_mut);
            for id in prompt.to_mut().iter_mut().chain(output) {
                *id = number(&mut self.blocks, *id);
            }
        }
    }
}
