//! RAGPulse traces: requests made of segments, whose ids name content and whose lengths stand in tables.
//!
//! A segment becomes tokens that its table, its id and the position in it determine; no two segments have a token in
//! common. The prompt is longer than its segments by a template whose place is unknown: its tokens come at the end and
//! are those of this request alone.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use trace::synthetic::nth_token;
use trace::{Body, Content, Row};

use super::clock::Unit;
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink, invented_length};
use super::source::{files, lines, unpacked_name};
use super::tokens::Numbers;
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "ragpulse",
    about: "Requests of segments with content ids, and tables of the segments' lengths.",
    details: "\
The folder, or the trace file in it: 0_*.jsonl with timestamp (s), input_length, output_length, session_id and hash_ids
(lists sys_prompt, passages_ids, history, web_search, user_input, taken in this order), and one table of lengths for each
list (*sys_prompt*, *passages*, *history*, *web_search*, *user_input*). Segments become synthetic tokens, the tokens not
accounted for (template) come last and are unique. Gives a trace of tokens without outputs.",
    options: &[],
    read,
};

/// The lists of a request, in the order of the prompt, and what their tables' names contain.
const LISTS: [(&str, &str); 5] = [
    ("sys_prompt", "sys_prompt"),
    ("passages_ids", "passages"),
    ("history", "history"),
    ("web_search", "web_search"),
    ("user_input", "user_input"),
];

/// A request has 6 to 12 tokens beyond its segments. Many more mean that its lengths are wrong.
const LONGEST_TEMPLATE_TOKENS: u32 = 4_096;

#[derive(Deserialize)]
struct Record {
    timestamp: Value,
    input_length: u32,
    output_length: u32,
    session_id: String,
    hash_ids: BTreeMap<String, Vec<u64>>,
}

/// The tokens of a segment: consecutive numbers of [`nth_token`].
#[derive(Clone, Copy)]
struct Segment {
    first: u32,
    len_tokens: u32,
}

#[derive(Default)]
struct Reader {
    sink: RowSink,
    tables: [HashMap<u64, Segment>; 5],
    numbers: Numbers,
    template_tokens: u64,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let (trace, tables) = find(job.input)?;
    let mut reader = Reader::default();
    for (index, path) in tables.iter().enumerate() {
        reader.table(index, path)?;
    }
    for line in lines(&trace)? {
        let (number, text) = line?;
        let location = SourceLocation::line(&trace, number);
        match reader.row(&text) {
            Ok(row) => reader.sink.push(location, row)?,
            Err(reason) => reader.sink.reject(&location, &reason),
        }
    }
    let mut sink = reader.sink;
    sink.note(
        Action::Format,
        format!(
            "{} template tokens whose place is unknown come last in their prompts and are unique",
            reader.template_tokens
        ),
    );
    sink.finish(job, Content::Tokens, Order::File, Links::ByArrival)
}

/// The trace and its tables.
fn find(input: &Path) -> Result<(PathBuf, Vec<PathBuf>), ImportError> {
    let fault = |problem: String| ImportError::Input {
        path: input.to_owned(),
        problem,
    };
    let folder = match input.is_dir() {
        true => input,
        false => input
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new(".")),
    };
    let all = files(folder, &[".jsonl"])?;
    let base = |path: &PathBuf| {
        let name = unpacked_name(path);
        Path::new(&name)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let tables = LISTS.iter().map(|(_, part)| {
        let found = all
            .iter()
            .find(|path| base(path).is_some_and(|name| name.contains(part)));
        let missing = || {
            fault(format!(
                "no table *{part}*.jsonl with the lengths of its segments"
            ))
        };
        found.cloned().ok_or_else(missing)
    });
    let tables = tables.collect::<Result<Vec<_>, _>>()?;
    let trace = match input.is_dir() {
        false => input.to_owned(),
        true => {
            let mut traces = all
                .iter()
                .filter(|path| base(path).is_some_and(|name| name.starts_with("0_")));
            match (traces.next(), traces.next()) {
                (Some(trace), None) => trace.clone(),
                _ => {
                    return Err(fault(
                        "expected one trace 0_*.jsonl in it; else name the file".to_owned(),
                    ));
                }
            }
        }
    };
    Ok((trace, tables))
}

impl Reader {
    /// Reads a table of lengths.
    fn table(&mut self, index: usize, path: &Path) -> Result<(), ImportError> {
        for line in lines(path)? {
            let (number, text) = line?;
            if let Err(reason) = self.segment(index, &text) {
                self.sink
                    .reject(&SourceLocation::line(path, number), &reason);
            }
        }
        self.sink.check()
    }

    fn segment(&mut self, index: usize, text: &str) -> Result<(), String> {
        let row: BTreeMap<String, u64> =
            serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let length = row.get("token_length").ok_or("no `token_length`")?;
        let id = row.iter().find(|(name, _)| name.ends_with("_id"));
        let (_, id) = id.ok_or("no `..._id`")?;
        let len_tokens = invented_length("token_length", *length)?;
        let first = self.numbers.take(len_tokens)?;
        let segment = Segment { first, len_tokens };
        match self.tables[index].insert(*id, segment) {
            Some(before) if before.len_tokens != len_tokens => Err(format!(
                "segment {id} has {len_tokens} tokens here, but {} in an earlier line",
                before.len_tokens
            )),
            _ => Ok(()),
        }
    }

    /// The segments of a request, in the order of its prompt.
    fn segments(&self, record: &Record) -> Result<Vec<Segment>, String> {
        let lists = LISTS.iter().zip(&self.tables);
        let named = lists.flat_map(|((list, _), table)| {
            let ids = record.hash_ids.get(*list).into_iter().flatten();
            ids.map(move |id| {
                let segment = table.get(id).copied();
                segment.ok_or_else(|| format!("{list} {id} is not in the table of lengths"))
            })
        });
        named.collect()
    }

    fn row(&mut self, text: &str) -> Result<Row<'static>, String> {
        let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let arrival_us = Unit::Us(1e6).of_json("timestamp", &record.timestamp)?;
        let unknown = record
            .hash_ids
            .keys()
            .find(|name| LISTS.iter().all(|(list, _)| list != name));
        if let Some(unknown) = unknown {
            return Err(format!(
                "hash_ids has the list `{unknown}`, which this format does not"
            ));
        }
        let segments = self.segments(&record)?;
        let lengths = segments.iter().map(|segment| u64::from(segment.len_tokens));
        let known: u64 = lengths.sum();
        let template = u64::from(record.input_length).checked_sub(known);
        let template = template.and_then(|tokens| u32::try_from(tokens).ok());
        let template = template.filter(|&tokens| tokens <= LONGEST_TEMPLATE_TOKENS);
        let template = template.ok_or_else(|| {
            format!(
                "input_length {}; expected the {known} tokens of its segments and at most {LONGEST_TEMPLATE_TOKENS} more",
                record.input_length
            )
        })?;
        invented_length("input_length", u64::from(record.input_length))?;
        let mut prompt = Vec::with_capacity(record.input_length as usize);
        for Segment { first, len_tokens } in segments {
            prompt.extend((first..first + len_tokens).map(nth_token));
        }
        prompt.extend(self.numbers.fresh(template)?);
        self.template_tokens += u64::from(template);
        Ok(Row {
            arrival_us,
            session_id: self.sink.session(&record.session_id),
            prompt_tokens: record.input_length,
            output_tokens: record.output_length,
            body: Body::Tokens {
                prompt: prompt.into(),
                output: None,
            },
            ..Row::default()
        })
    }
}
