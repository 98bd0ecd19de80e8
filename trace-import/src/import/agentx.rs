//! Nested agent sessions: one JSON object a session, with `block_size` and `requests[]`; or the same as Parquet rows.
//!
//! A request has `t` (seconds since the session's start), `type`, `in` and `out` (tokens) and `hash_ids` (full blocks of
//! the prompt). An item of type `subagent` has `requests[]` of its own, whose `t` counts from the item's; it becomes a
//! child session in the same id space. Ids are local to a session (`hash_id_scope` `local`, the default): each session
//! gets an id space of its own. There is no absolute clock, so the sessions' starts are drawn, uniformly over a span.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use trace::{Body, Content, Row, prompt_blocks};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::clock::{SEED, SPAN, Starts, microseconds};
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::{files, lines, read_text, unpacked_name};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "agentx",
    about: "Nested agent sessions, one JSON object or Parquet row each.",
    details: "\
A folder of .json and .jsonl files (read in the order of their names; each may be packed as .zst), one such file, or a
.parquet file whose rows are sessions. Times are in seconds since the session's start; block ids are those of full
blocks and local to a session, so every session gets an id space of its own. Sub-agents become child sessions.

The format has no clock that sessions share. Starts are those of this Python, one draw a session in the order of
reading: r = random.Random(SEED); start = r.uniform(0, SPAN in seconds).",
    options: &[SPAN, SEED],
    read,
};

#[derive(Deserialize)]
struct Session {
    id: Option<String>,
    block_size: u32,
    hash_id_scope: Option<String>,
    requests: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    t: f64,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "in")]
    prompt_tokens: Option<u32>,
    #[serde(rename = "out")]
    output_tokens: Option<u32>,
    hash_ids: Option<Vec<u64>>,
    stop: Option<String>,
    requests: Option<Vec<Item>>,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let starts = Starts::new(
        job.params.parsed::<u64>(SEED.name),
        job.params.duration_us(SPAN.name).unsigned_abs(),
    );
    let files = files(job.input, &[".json", ".jsonl"])?;
    let mut importer = Importer::new(starts);
    for (done, file) in files.iter().enumerate() {
        (job.progress)(done, files.len());
        importer.read(file)?;
    }
    (job.progress)(files.len(), files.len());
    importer.finish(job)
}

struct Importer {
    sink: RowSink,
    starts: Starts,
    /// How often a session id came up.
    names: HashMap<String, u64>,
    block_tokens: Option<u32>,
    sessions: u64,
    children: u64,
}

impl Importer {
    fn new(starts: Starts) -> Self {
        Self {
            sink: RowSink::default(),
            starts,
            names: HashMap::new(),
            block_tokens: None,
            sessions: 0,
            children: 0,
        }
    }

    /// Reads one file: lines or rows of sessions if its name says so, else one session.
    fn read(&mut self, file: &Path) -> Result<(), ImportError> {
        let name = unpacked_name(file);
        if name.ends_with(".parquet") {
            for (number, row) in trace::json_rows(file)?.enumerate() {
                let location = SourceLocation::file(file).within(&format!("row {number}"));
                self.session(&location, &row?)?;
            }
        } else if name.ends_with(".jsonl") {
            for line in lines(file)? {
                let (number, text) = line?;
                self.session(&SourceLocation::line(file, number), &text)?;
            }
        } else {
            self.session(&SourceLocation::file(file), &read_text(file)?)?;
        }
        Ok(())
    }

    fn session(&mut self, location: &SourceLocation, text: &str) -> Result<(), ImportError> {
        match serde_json::from_str::<Session>(text) {
            Ok(session) => self.add(location, session),
            Err(fault) => {
                self.sink.reject(location, &fault);
                Ok(())
            }
        }
    }

    fn add(&mut self, location: &SourceLocation, session: Session) -> Result<(), ImportError> {
        let expected = *self.block_tokens.get_or_insert(session.block_size);
        if session.block_size == 0 || session.block_size != expected {
            let reason = format!(
                "block_size {}; expected {expected}, as before, and not 0",
                session.block_size
            );
            self.sink.reject(location, &reason);
            return Ok(());
        }
        let id_base = match session.hash_id_scope.as_deref() {
            None | Some("local") => self.id_base(session.id.as_deref().unwrap_or_default()),
            Some("global") => 0,
            Some(other) => {
                let reason = format!("hash_id_scope `{other}`; expected `local` or `global`");
                self.sink.reject(location, &reason);
                return Ok(());
            }
        };
        let frame = Frame {
            id_base,
            start_us: self.starts.next_us(),
            session_id: self.sink.new_session(),
            caller: None,
            child: false,
        };
        self.sessions += 1;
        self.items(location, session.requests, frame)
    }

    /// Where a session's ids begin. Local ids stay in sequence, which packs well; that no two sessions' ranges meet is
    /// checked when all paths are.
    fn id_base(&mut self, name: &str) -> u64 {
        let repeats = self.names.entry(name.to_owned()).or_insert(0);
        let base = xxh3_64_with_seed(name.as_bytes(), *repeats);
        *repeats += 1;
        base
    }

    /// Adds the requests of a session or of a sub-agent.
    fn items(
        &mut self,
        location: &SourceLocation,
        items: Vec<Item>,
        frame: Frame,
    ) -> Result<(), ImportError> {
        let mut step = 0;
        let mut last = frame.caller;
        for (index, item) in items.into_iter().enumerate() {
            let location = location.within(&format!("requests[{index}]"));
            let Some(arrival_us) = microseconds(item.t, 1e6).map(|us| us + frame.start_us) else {
                let reason = format!("t {} is not a time in seconds from 0 on", item.t);
                self.sink.reject(&location, &reason);
                continue;
            };
            if item.kind.as_deref() == Some(SUBAGENT) {
                self.children += 1;
                let child = Frame {
                    start_us: arrival_us,
                    session_id: self.sink.new_session(),
                    caller: last,
                    child: true,
                    ..frame
                };
                self.items(&location, item.requests.unwrap_or_default(), child)?;
                continue;
            }
            let mut row = Row {
                arrival_us,
                session_id: frame.session_id,
                step,
                parent_request: last,
                ..Row::default()
            };
            match complete(&mut row, item, &frame, self.block_tokens.unwrap_or(1)) {
                Ok(()) => {
                    last = Some(self.sink.next_id());
                    step += 1;
                    self.sink.push(location, row)?;
                }
                Err(reason) => self.sink.reject(&location, &reason),
            }
        }
        Ok(())
    }

    fn finish(mut self, job: &ImportJob<'_>) -> Result<Imported, ImportError> {
        self.sink.check()?;
        let rows = self.sink.rows().iter();
        let in_children = rows.filter(|source| source.row.kind == SUBAGENT).count();
        let (sessions, children) = (self.sessions, self.children);
        self.sink.note(
            Action::Format,
            format!(
                "{sessions} sessions; {children} sub-agents with {in_children} requests became child sessions"
            ),
        );
        self.sink.note(
            Action::Format,
            "no absolute clock: session starts drawn uniformly over the span from the seed",
        );
        self.sink.note(
            Action::Format,
            "block ids are local to a session: each session got an id space of its own",
        );
        let content = Content::Blocks {
            block_tokens: self.block_tokens.unwrap_or(1),
        };
        self.sink.finish(job, content, Order::Session, Links::Given)
    }
}

const SUBAGENT: &str = "subagent";

/// What the requests of one session, or of one sub-agent of it, have in common.
#[derive(Clone, Copy)]
struct Frame {
    id_base: u64,
    start_us: i64,
    session_id: u64,
    /// The request that called the sub-agent.
    caller: Option<u64>,
    child: bool,
}

/// Fills in what a request says of itself.
fn complete(
    row: &mut Row<'static>,
    item: Item,
    frame: &Frame,
    block_tokens: u32,
) -> Result<(), String> {
    row.prompt_tokens = item.prompt_tokens.ok_or("no `in` (prompt tokens)")?;
    row.output_tokens = item.output_tokens.ok_or("no `out` (output tokens)")?;
    let mut ids = item.hash_ids.ok_or("no `hash_ids`")?;
    let expected = prompt_blocks(row.prompt_tokens, block_tokens);
    if ids.len() != expected as usize {
        return Err(format!(
            "{} hash_ids; expected {expected}, the full blocks of {block_tokens} in {} tokens",
            ids.len(),
            row.prompt_tokens
        ));
    }
    for id in &mut ids {
        *id = id.wrapping_add(frame.id_base);
    }
    row.kind = match (frame.child, item.kind.as_deref()) {
        (true, _) => Cow::Borrowed(SUBAGENT),
        (false, Some("s")) => Cow::Borrowed("streaming"),
        (false, Some("n")) => Cow::Borrowed("non-streaming"),
        (false, _) => Cow::Owned(item.kind.unwrap_or_default()),
    };
    // The format says that a tool was called, not which.
    row.tool = (item.stop.as_deref() == Some("tool_use")).then_some(Cow::Borrowed("tool_use"));
    row.body = Body::Blocks {
        prompt: Cow::Owned(ids),
        output: None,
    };
    Ok(())
}
