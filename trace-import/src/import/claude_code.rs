//! Session logs of the Claude Code tool, as it keeps them under the user's home folder: JSON lines, one a message, with
//! `uuid`, `parentUuid`, `sessionId`, `timestamp`, and for answers `message.id` and `message.usage`.
//!
//! A log does not hold the prompts as sent (no system prompt, no tool schemas), but their lengths as the provider
//! counted them, and which answer a request continues. So prompts are synthetic: a request begins with all of the prompt
//! and answer that it continues, and the rest of its length is new. Answers are logged in parts, one line a part, all
//! with one `message.id`; a resumed session repeats lines of the one it resumes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use params::{Domain, Param};
use serde::Deserialize;
use serde_json::Value;
use trace::synthetic::{FreshIds, Text};
use trace::{Body, Content, Provenance, Request, Row, WorkloadBuilder};

use super::clock::date_us;
use super::format::{ImportFormat, ImportJob};
use super::options::{block_tokens, option_fault};
use super::sink::{Links, Order, RowSink, invented_length};
use super::source::{lines, unpacked_name};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "claude-code",
    about: "Session logs of Claude Code: JSON lines of messages with the provider's token counts.",
    details: "\
A log file, or a folder of them and all folders below (such as ~/.claude/projects). One request an answer. Its prompt
has the length that the provider counted (input, cache creation and cache read tokens together), begins with the prompt
and answer that it continues, and is new beyond them; logs have no prompts as sent. Sessions begin with --system-tokens
tokens in common, as system prompts and tools are shared but not logged. A request arrives when the message that it
answers was logged. Sub-agents (sidechains) become child sessions. Reports what the provider read from its cache beside
what a cache without limit would have had.",
    options: &[block_tokens("64"), SYSTEM_TOKENS],
    read,
};

const SYSTEM_TOKENS: Param = Param {
    name: "system-tokens",
    help: "Tokens of the system prompt and tools that all sessions share.",
    domain: Domain::Count(0, u64::MAX),
    default: "0",
};

const SUBAGENT: &str = "subagent";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type", default)]
    kind: String,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    session_id: Option<String>,
    agent_id: Option<String>,
    timestamp: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    /// Of an answer a [`Message`]; of other lines anything.
    message: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    content: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: u64,
}

/// An answer, and so a request.
struct Answer {
    location: SourceLocation,
    arrival_us: i64,
    session: String,
    /// The answer that the request continues.
    continues: Option<usize>,
    sidechain: bool,
    prompt_tokens: u32,
    output_tokens: u32,
    read_tokens: u32,
    tool: Option<String>,
}

/// A message of the log.
struct Node {
    at_us: i64,
    /// The last answer up to here.
    answer: Option<usize>,
}

#[derive(Default)]
struct Reader {
    sink: RowSink,
    answers: Vec<Answer>,
    by_message: HashMap<String, usize>,
    nodes: HashMap<String, Node>,
    other_lines: u64,
    without_usage: u64,
    synthetic: u64,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let block_tokens = job.block_tokens();
    let system_tokens = job.params.parsed::<u64>(SYSTEM_TOKENS.name);
    let system_tokens = invented_length("system-tokens", system_tokens)
        .map_err(|_| option_fault(&SYSTEM_TOKENS, &system_tokens.to_string()))?;
    let mut reader = Reader::default();
    let files = logs(job.input)?;
    for (done, file) in files.iter().enumerate() {
        (job.progress)(done, files.len());
        for line in lines(file)? {
            let (number, text) = line?;
            let location = SourceLocation::line(file, number);
            if let Err(reason) = reader.line(&location, &text) {
                reader.sink.reject(&location, &reason);
            }
        }
    }
    reader.sink.check()?;
    reader.finish(job, block_tokens, system_tokens)
}

/// The log files at or below a location, by name.
fn logs(input: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![input.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|fault| ImportError::io(&folder, fault))?;
        for entry in entries {
            let entry = entry.map_err(|fault| ImportError::io(&folder, fault))?;
            // Not `path().is_dir()`: a link could lead back up.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if unpacked_name(&entry.path()).ends_with(".jsonl") && entry.path().is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(ImportError::Input {
            path: input.to_owned(),
            problem: "no .jsonl file in or below this folder".to_owned(),
        }),
        false => Ok(found),
    }
}

impl Reader {
    fn line(&mut self, location: &SourceLocation, text: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let (Some(uuid), Some(timestamp)) = (&line.uuid, &line.timestamp) else {
            self.other_lines += 1;
            return Ok(());
        };
        let at_us = date_us(timestamp).ok_or_else(|| {
            format!("timestamp `{timestamp}` is not a date and time from 1970 on")
        })?;
        let parent = line
            .parent_uuid
            .as_ref()
            .and_then(|uuid| self.nodes.get(uuid));
        let before = parent.and_then(|node| node.answer);
        let asked_us = parent.map_or(at_us, |node| node.at_us);
        let answer = match line.kind.as_str() {
            "assistant" => self.answer(location, &line, before, asked_us)?.or(before),
            _ => before,
        };
        self.nodes
            .entry(uuid.clone())
            .or_insert(Node { at_us, answer });
        Ok(())
    }

    /// The answer that a line is a part of.
    fn answer(
        &mut self,
        location: &SourceLocation,
        line: &Line,
        before: Option<usize>,
        asked_us: i64,
    ) -> Result<Option<usize>, String> {
        let message = line.message.as_ref().ok_or("an answer without `message`")?;
        let message = Message::deserialize(message).map_err(|fault| fault.to_string())?;
        if message.model.as_deref() == Some("<synthetic>") {
            self.synthetic += 1;
            return Ok(None);
        }
        let (Some(id), Some(usage)) = (&message.id, &message.usage) else {
            self.without_usage += 1;
            return Ok(None);
        };
        let read = usage.cache_read_input_tokens.unwrap_or(0);
        let created = usage.cache_creation_input_tokens.unwrap_or(0);
        let prompt = usage
            .input_tokens
            .saturating_add(created)
            .saturating_add(read);
        let output_tokens = invented_length("output_tokens", usage.output_tokens)?;
        let tool = message.content.as_ref().and_then(tool);
        if let Some(&index) = self.by_message.get(id) {
            let known = &mut self.answers[index];
            known.output_tokens = known.output_tokens.max(output_tokens);
            known.tool = known.tool.take().or(tool);
            return Ok(Some(index));
        }
        let session = line.session_id.clone().unwrap_or_default();
        let agent = line.agent_id.as_deref().unwrap_or("sidechain");
        self.answers.push(Answer {
            location: location.clone(),
            arrival_us: asked_us,
            session: match line.is_sidechain {
                true => format!("{session} {agent}"),
                false => session,
            },
            continues: before,
            sidechain: line.is_sidechain,
            prompt_tokens: invented_length("tokens of the prompt", prompt)?,
            output_tokens,
            read_tokens: invented_length("cache_read_input_tokens", read)?,
            tool,
        });
        self.by_message.insert(id.clone(), self.answers.len() - 1);
        Ok(Some(self.answers.len() - 1))
    }

    fn finish(
        mut self,
        job: &ImportJob<'_>,
        block_tokens: u32,
        system_tokens: u32,
    ) -> Result<Imported, ImportError> {
        let content = Content::Blocks { block_tokens };
        let mut fresh = FreshIds::new(content, 0);
        let mut system = fresh.empty_text();
        system.grow(system_tokens, &mut fresh);
        let shorter = self.push_rows(&system, &mut fresh)?;
        let mut sink = self.sink;
        sink.start_clock_at_first();
        compare(&mut sink, &self.answers, block_tokens);
        sink.note(
            Action::Format,
            "prompts are synthetic: as long as the provider counted, beginning with what they continue",
        );
        sink.count(
            Action::Format,
            self.other_lines + self.synthetic,
            "lines are no messages of a model (summaries, snapshots, the tool's own notices) and are skipped",
        );
        sink.count(
            Action::Kept,
            shorter,
            "prompts are shorter than the prompt they continue: taken as its beginning",
        );
        sink.count(
            Action::Dropped,
            self.without_usage,
            "answers without id or usage: nothing tells their prompts' lengths",
        );
        sink.finish(job, content, Order::Session, Links::Given)
    }

    /// Makes a row of every answer; returns how many prompts are shorter than the prompt that they continue.
    fn push_rows(&mut self, system: &Text, fresh: &mut FreshIds) -> Result<u64, ImportError> {
        let mut texts = Continued::new(&self.answers);
        let mut steps = HashMap::new();
        let mut shorter = 0;
        for (index, answer) in self.answers.iter().enumerate() {
            let continued = answer.continues.and_then(|before| {
                let tokens = self.answers[before].prompt_tokens;
                shorter += u64::from(answer.prompt_tokens < tokens);
                texts.take(before)
            });
            let mut text = continued.unwrap_or_else(|| system.clone());
            text.truncate(answer.prompt_tokens);
            text.grow(answer.prompt_tokens - text.len_tokens(), fresh);
            let step: &mut u32 = steps.entry(&answer.session).or_default();
            let row = Row {
                arrival_us: answer.arrival_us,
                session_id: self.sink.session(&answer.session),
                step: *step,
                parent_request: answer.continues.map(|before| before as u64),
                kind: Cow::Borrowed(if answer.sidechain { SUBAGENT } else { "" }),
                tool: answer.tool.clone().map(Cow::Owned),
                prompt_tokens: answer.prompt_tokens,
                output_tokens: answer.output_tokens,
                body: Body::Blocks {
                    prompt: Cow::Owned(text.blocks().to_vec()),
                    output: None,
                },
                ..Row::default()
            };
            *step += 1;
            text.grow(answer.output_tokens, fresh);
            texts.keep(index, text);
            self.sink.push(answer.location.clone(), row)?;
        }
        Ok(shorter)
    }
}

/// Texts of answers that later answers continue, each kept until the last of them.
struct Continued {
    /// Answers that continue each.
    left: HashMap<usize, u32>,
    texts: HashMap<usize, Text>,
}

impl Continued {
    fn new(answers: &[Answer]) -> Self {
        let mut left = HashMap::new();
        for before in answers.iter().filter_map(|answer| answer.continues) {
            *left.entry(before).or_insert(0) += 1;
        }
        Self {
            left,
            texts: HashMap::new(),
        }
    }

    fn keep(&mut self, index: usize, text: Text) {
        if self.left.contains_key(&index) {
            self.texts.insert(index, text);
        }
    }

    fn take(&mut self, index: usize) -> Option<Text> {
        let left = self.left.get_mut(&index)?;
        *left -= 1;
        match *left {
            0 => self.texts.remove(&index),
            _ => self.texts.get(&index).cloned(),
        }
    }
}

/// The first tool that an answer calls.
fn tool(content: &Value) -> Option<String> {
    let parts = content.as_array()?;
    let call = parts.iter().find(|part| part["type"] == "tool_use")?;
    Some(call["name"].as_str()?.to_owned())
}

/// Tells what the provider read from its cache, and what a cache without limit would have had.
fn compare(sink: &mut RowSink, answers: &[Answer], block_tokens: u32) {
    let mut order: Vec<_> = sink.rows().iter().map(|source| &source.row).collect();
    order.sort_by_key(|row| row.arrival_us);
    let mut builder = WorkloadBuilder::new(block_tokens);
    for row in order {
        if let Body::Blocks { prompt, .. } = &row.body {
            let request = Request {
                prompt_tokens: row.prompt_tokens,
                ..Request::default()
            };
            // Synthetic ids cannot contradict each other.
            let _ = builder.push(request, prompt);
        }
    }
    let workload = builder.finish(Provenance::default());
    let hit = |request: &Request| request.seen_blocks.min(workload.usable_blocks(request));
    let blocks: u64 = workload
        .requests()
        .iter()
        .map(|request| u64::from(hit(request)))
        .sum();
    let ours = blocks * u64::from(block_tokens);
    let read: u64 = answers
        .iter()
        .map(|answer| u64::from(answer.read_tokens))
        .sum();
    let all: u64 = answers
        .iter()
        .map(|answer| u64::from(answer.prompt_tokens))
        .sum();
    let share = |tokens: u64| tokens as f64 / all.max(1) as f64;
    sink.note(
        Action::Kept,
        format!(
            "of {all} prompt tokens the provider read {read} from its cache ({:.4}); a cache without limit would have \
             had {ours} ({:.4})",
            share(read),
            share(ours)
        ),
    );
}
