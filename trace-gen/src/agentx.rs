//! Import of nested agent sessions: one JSON object a session, with `block_size` and `requests[]`.
//!
//! A request has `t` (seconds since the session's start), `type`, `in` and `out` (tokens) and `hash_ids` (full blocks of
//! the prompt). An item of type `subagent` has `requests[]` of its own, whose `t` counts from the item's; it becomes a
//! child session in the same id space. Ids are local to a session (`hash_id_scope` `local`, the default): each session
//! gets an id space of its own. There is no absolute clock, so the sessions' starts are drawn, uniformly over a span.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;
use trace::{Body, Content, Meta, Provenance, Row, prompt_blocks};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{GenError, Place, Rejected};
use crate::import::{Imported, SourceRow, lines, microseconds, read_text, write_sorted};

/// The longest span over which sessions can start: beyond it a float no longer tells microseconds apart.
pub const LONGEST_SPAN_US: u64 = 1 << 53;

/// How to place the sessions on one clock.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Sessions start uniformly over this many microseconds.
    pub span_us: u64,
    /// Seed of their starts.
    pub seed: u64,
}

impl Default for Options {
    /// Four hours, seed 0.
    fn default() -> Self {
        Self {
            span_us: 4 * 3_600 * 1_000_000,
            seed: 0,
        }
    }
}

#[derive(Deserialize)]
struct Session {
    #[serde(default)]
    id: String,
    block_size: u32,
    hash_id_scope: Option<String>,
    requests: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    t: f64,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(rename = "in")]
    prompt_tokens: Option<u32>,
    #[serde(rename = "out")]
    output_tokens: Option<u32>,
    hash_ids: Option<Vec<u64>>,
    #[serde(default)]
    stop: String,
    requests: Option<Vec<Item>>,
}

/// Imports a folder of `.json`, `.json.zst`, `.jsonl` and `.jsonl.zst` files (in the order of their names), or one such
/// file, as a block trace. `progress` hears of every session, before it is read, how many files are done and to do.
///
/// # Errors
/// Where the input cannot be read, a session cannot be used (all are checked, the first ten faults named), or the output
/// cannot be written.
pub fn import(
    input: &Path,
    out: &Path,
    options: &Options,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Imported, GenError> {
    if options.span_us > LONGEST_SPAN_US {
        return Err(GenError::Parameter {
            name: "span of the session starts",
            found: format!("{} us", options.span_us),
            expected: format!("at most {LONGEST_SPAN_US} us"),
        });
    }
    let files = session_files(input)?;
    let mut importer = Importer::new(options);
    for (done, file) in files.iter().enumerate() {
        progress(done, files.len());
        importer.read(file)?;
    }
    progress(files.len(), files.len());
    importer.finish(input, out)
}

/// The files of a folder that can hold sessions, by name; or the one file.
fn session_files(input: &Path) -> Result<Vec<PathBuf>, GenError> {
    if !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let entries = std::fs::read_dir(input).map_err(|source| GenError::io(input, source))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| GenError::io(input, source))?.path();
        let name = path.to_string_lossy();
        let name = name.strip_suffix(".zst").unwrap_or(&name);
        if path.is_file() && (name.ends_with(".json") || name.ends_with(".jsonl")) {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(GenError::Input {
            path: input.to_owned(),
            problem: "no .json, .jsonl, .json.zst or .jsonl.zst file in this folder".to_owned(),
        }),
        false => Ok(files),
    }
}

struct Importer<'a> {
    options: &'a Options,
    starts: ChaCha8Rng,
    /// How often a session id came up.
    names: HashMap<String, u64>,
    block_tokens: Option<u32>,
    sessions: u64,
    children: u64,
    rows: Vec<SourceRow>,
    rejected: Rejected,
}

impl<'a> Importer<'a> {
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            starts: ChaCha8Rng::seed_from_u64(options.seed),
            names: HashMap::new(),
            block_tokens: None,
            sessions: 0,
            children: 0,
            rows: Vec::new(),
            rejected: Rejected::default(),
        }
    }

    /// Reads one file: lines of sessions if its name says so, else one session.
    fn read(&mut self, file: &Path) -> Result<(), GenError> {
        let name = file.to_string_lossy();
        let name = name.strip_suffix(".zst").unwrap_or(&name);
        if !name.ends_with(".jsonl") {
            self.session(&Place::file(file), &read_text(file)?);
            return Ok(());
        }
        for line in lines(file)? {
            let (number, text) = line?;
            self.session(&Place::line(file, number), &text);
        }
        Ok(())
    }

    fn session(&mut self, place: &Place, text: &str) {
        match serde_json::from_str::<Session>(text) {
            Ok(session) => self.add(place, session),
            Err(fault) => self.rejected.add(place, &fault),
        }
    }

    fn add(&mut self, place: &Place, session: Session) {
        let expected = *self.block_tokens.get_or_insert(session.block_size);
        if session.block_size == 0 || session.block_size != expected {
            let reason = format!(
                "block_size {}; expected {expected}, as before, and not 0",
                session.block_size
            );
            return self.rejected.add(place, &reason);
        }
        let id_base = match session.hash_id_scope.as_deref() {
            None | Some("local") => self.id_base(&session.id),
            Some("global") => 0,
            Some(other) => {
                let reason = format!("hash_id_scope `{other}`; expected `local` or `global`");
                return self.rejected.add(place, &reason);
            }
        };
        let start_us = match self.options.span_us {
            0 => 0,
            span_us => self.starts.random_range(0..span_us),
        };
        let frame = Frame {
            id_base,
            start_us: i64::try_from(start_us).unwrap_or(0),
            session_id: self.sessions + self.children,
            caller: None,
            child: false,
        };
        self.sessions += 1;
        self.items(place, session.requests, frame);
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
    fn items(&mut self, place: &Place, items: Vec<Item>, frame: Frame) {
        let mut step = 0;
        let mut last = frame.caller;
        for (index, item) in items.into_iter().enumerate() {
            let place = place.within(&format!("requests[{index}]"));
            let Some(arrival_us) = microseconds(item.t, 1e6).map(|us| us + frame.start_us) else {
                let reason = format!("t {} is not a time in seconds from 0 on", item.t);
                self.rejected.add(&place, &reason);
                continue;
            };
            if item.kind == "subagent" {
                self.children += 1;
                let child = Frame {
                    start_us: arrival_us,
                    session_id: self.sessions - 1 + self.children,
                    caller: last,
                    child: true,
                    ..frame
                };
                self.items(&place, item.requests.unwrap_or_default(), child);
                continue;
            }
            let mut row = Row {
                request_id: self.rows.len() as u64,
                arrival_us,
                session_id: frame.session_id,
                step,
                parent_request: last,
                ..Row::default()
            };
            match complete(&mut row, item, &frame, self.block_tokens.unwrap_or(1)) {
                Ok(()) => {
                    last = Some(row.request_id);
                    step += 1;
                    self.rows.push(SourceRow { place, row });
                }
                Err(reason) => self.rejected.add(&place, &reason),
            }
        }
    }

    fn finish(mut self, input: &Path, out: &Path) -> Result<Imported, GenError> {
        self.rejected.check()?;
        let Some(block_tokens) = self.block_tokens else {
            return Err(GenError::Input {
                path: input.to_owned(),
                problem: "no session in it".to_owned(),
            });
        };
        let meta = Meta {
            content: Content::Blocks { block_tokens },
            provenance: Provenance {
                name: input
                    .file_stem()
                    .map(|name| name.to_string_lossy().into_owned()),
                source: input
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned()),
                generator: Some(format!(
                    "trace-gen import agentx, starts uniform over {} s",
                    self.options.span_us as f64 / 1e6
                )),
                seed: Some(self.options.seed.to_string()),
                ..Provenance::default()
            },
        };
        let requests = self.rows.len() as u64;
        let in_children = self
            .rows
            .iter()
            .filter(|source| source.row.kind == SUBAGENT)
            .count();
        write_sorted(out, &meta, self.rows)?;
        Ok(Imported {
            requests,
            sessions: self.sessions + self.children,
            notes: vec![
                format!(
                    "{} sessions; {} sub-agents with {in_children} requests became child sessions",
                    self.sessions, self.children
                ),
                format!(
                    "no absolute clock: session starts drawn uniformly over {} s, seed {}",
                    self.options.span_us as f64 / 1e6,
                    self.options.seed
                ),
                "block ids are local to a session: each session got an id space of its own"
                    .to_owned(),
            ],
        })
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
    row.kind = match (frame.child, item.kind.as_str()) {
        (true, _) => Cow::Borrowed(SUBAGENT),
        (false, "s") => Cow::Borrowed("streaming"),
        (false, "n") => Cow::Borrowed("non-streaming"),
        (false, _) => Cow::Owned(item.kind),
    };
    // The format says that a tool was called, not which.
    row.tool = (item.stop == "tool_use").then_some(Cow::Borrowed("tool_use"));
    row.body = Body::Blocks {
        prompt: Cow::Owned(ids),
        output: None,
    };
    Ok(())
}
