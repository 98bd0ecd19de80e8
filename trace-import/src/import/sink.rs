//! What all importers share: taking rows in, telling what became of them, writing them out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use trace::{
    Body, BuildError, Content, MemoryBudget, Meta, Provenance, Request, Row, TraceWriter,
    WorkloadBuilder,
};
use xxhash_rust::xxh3::Xxh3Default;

use super::clock::SEED;
use super::format::ImportJob;
use crate::error::{ImportError, Rejected, SourceLocation};
use crate::note::{Action, Imported, Note};

/// A row and where it came from. Its `request_id` is its index in the order of reading.
pub(crate) struct SourceRow {
    pub(crate) location: SourceLocation,
    pub(crate) row: Row<'static>,
}

/// The longest text that is made up from nothing but its length: far more than any model takes, and no burden to memory.
const LONGEST_INVENTED_TOKENS: u32 = 1 << 24;

/// A length from which text is made up.
pub(crate) fn invented_length(name: &str, tokens: u64) -> Result<u32, String> {
    match u32::try_from(tokens) {
        Ok(tokens) if tokens <= LONGEST_INVENTED_TOKENS => Ok(tokens),
        _ => Err(format!(
            "{name} {tokens}; expected at most {LONGEST_INVENTED_TOKENS} tokens"
        )),
    }
}

/// Which rows ought to come in the order of their arrivals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Those of a file.
    File,
    /// Those of a session.
    Session,
}

/// How requests of a session are linked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// The format says, and the importer has set `step` and `parent_request`.
    Given,
    /// One after another in order of arrival.
    ByArrival,
}

/// Takes rows in.
#[derive(Default)]
pub(crate) struct RowSink {
    rows: Vec<SourceRow>,
    rejected: Rejected,
    notes: Vec<Note>,
    sessions: HashMap<String, u64>,
    counted_sessions: u64,
    budget: MemoryBudget,
}

impl RowSink {
    /// A sink for rows of one file, whose size bounds what may be made of it.
    pub(crate) fn of_file(input: &Path) -> Self {
        let input_bytes = std::fs::metadata(input).map_or(0, |file| file.len());
        Self {
            budget: MemoryBudget::of_input(input_bytes),
            ..Self::default()
        }
    }

    /// The id of the next row.
    pub(crate) fn next_id(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Takes a row; `row.request_id` is set.
    ///
    /// # Errors
    /// Where the rows hold more memory than they may.
    pub(crate) fn push(
        &mut self,
        location: SourceLocation,
        mut row: Row<'static>,
    ) -> Result<(), ImportError> {
        let total = u64::from(row.prompt_tokens) + u64::from(row.output_tokens);
        if total > u64::from(u32::MAX) {
            let reason = format!(
                "prompt and output have {total} tokens together; expected at most {}",
                u32::MAX
            );
            self.reject(&location, &reason);
            return Ok(());
        }
        hold(&mut self.budget, &location, &row)?;
        row.request_id = self.next_id();
        self.rows.push(SourceRow { location, row });
        Ok(())
    }

    /// Counts the memory of rows that were filled after they were pushed.
    pub(crate) fn hold(&mut self, at: usize) -> Result<(), ImportError> {
        match self.rows.get(at) {
            Some(SourceRow { location, row }) => hold(&mut self.budget, location, row),
            None => Ok(()),
        }
    }

    pub(crate) fn reject(&mut self, location: &SourceLocation, reason: &dyn fmt::Display) {
        self.rejected.add(location, reason);
    }

    /// The number of the session of this name.
    pub(crate) fn session(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.sessions.get(name) {
            return number;
        }
        let number = self.new_session();
        self.sessions.insert(name.to_owned(), number);
        number
    }

    /// The number of one more session.
    pub(crate) fn new_session(&mut self) -> u64 {
        self.counted_sessions += 1;
        self.counted_sessions - 1
    }

    pub(crate) fn rows(&mut self) -> &mut Vec<SourceRow> {
        &mut self.rows
    }

    /// An error if any row was rejected.
    pub(crate) fn check(&mut self) -> Result<(), ImportError> {
        self.rejected.check()
    }

    pub(crate) fn note(&mut self, action: Action, text: impl Into<String>) {
        let text = text.into();
        self.notes.push(Note { action, text });
    }

    /// A note if there is anything to report.
    pub(crate) fn count(&mut self, action: Action, count: u64, text: &str) {
        if count > 0 {
            self.note(action, format!("{count} {text}"));
        }
    }

    /// Lets the clock begin at the first arrival.
    pub(crate) fn start_clock_at_first(&mut self) {
        let first = self.rows.iter().map(|source| source.row.arrival_us).min();
        let Some(first_us) = first.filter(|&first_us| first_us > 0) else {
            return;
        };
        for source in &mut self.rows {
            source.row.arrival_us -= first_us;
        }
        self.note(
            Action::Format,
            format!(
                "the clock begins with the first arrival, {} s on the input's clock",
                first_us as f64 / 1e6
            ),
        );
    }

    /// Sorts the rows by arrival (stable: equal arrivals stay in the order of reading), numbers them in that order,
    /// checks that every block id stands for its whole prefix, and writes them.
    pub(crate) fn finish(
        mut self,
        job: &ImportJob<'_>,
        content: Content,
        order: Order,
        links: Links,
    ) -> Result<Imported, ImportError> {
        self.check()?;
        if self.rows.is_empty() {
            return Err(ImportError::Input {
                path: job.input.to_owned(),
                problem: "no request in it".to_owned(),
            });
        }
        let out_of_order = out_of_order(&self.rows, order);
        self.rows.sort_by_key(|source| source.row.arrival_us);
        number(&mut self.rows);
        if links == Links::ByArrival {
            link(&mut self.rows);
        }
        self.report(out_of_order);
        check_paths(content, &self.rows)?;
        if job.strict {
            refuse(&self.notes)?;
        }
        let mut writer = TraceWriter::create(job.out, &meta(job, content))?;
        for source in &self.rows {
            writer.write(&source.row)?;
        }
        writer.finish()?;
        self.notes.sort_by_key(|note| note.action);
        let sessions: HashSet<_> = self
            .rows
            .iter()
            .map(|source| source.row.session_id)
            .collect();
        Ok(Imported {
            requests: self.rows.len() as u64,
            sessions: sessions.len() as u64,
            notes: self.notes,
        })
    }

    /// Notes that any format may give cause to.
    fn report(&mut self, out_of_order: u64) {
        self.count(
            Action::Changed,
            out_of_order,
            "rows were out of order: sorted by arrival, equal arrivals as they were read",
        );
        let count = |of: fn(&Row<'_>) -> bool| {
            self.rows.iter().filter(|source| of(&source.row)).count() as u64
        };
        let empty = count(|row| row.prompt_tokens == 0);
        let silent = count(|row| row.output_tokens == 0);
        let (repeated_rows, repeated_prompts) = repeats(&self.rows);
        self.count(
            Action::Kept,
            empty,
            "prompts are empty: requests that hit and cost nothing",
        );
        self.count(Action::Kept, silent, "outputs have no tokens");
        self.count(
            Action::Kept,
            repeated_rows,
            "rows repeat an earlier one in arrival, lengths and full blocks or tokens",
        );
        self.count(
            Action::Kept,
            repeated_prompts,
            "prompts repeat an earlier prompt of their session from end to end",
        );
    }
}

/// Rows that arrive before the row read before them.
fn out_of_order(rows: &[SourceRow], order: Order) -> u64 {
    let mut latest_us = HashMap::new();
    let mut count = 0;
    for (index, SourceRow { location, row }) in rows.iter().enumerate() {
        let before = match order {
            Order::Session => latest_us.insert(row.session_id, row.arrival_us),
            Order::File => match index.checked_sub(1).map(|before| &rows[before]) {
                Some(before) if before.location.file == location.file => {
                    Some(before.row.arrival_us)
                }
                _ => None,
            },
        };
        count += u64::from(before.is_some_and(|before_us| row.arrival_us < before_us));
    }
    count
}

/// Gives every request its row number as id, and lets the references follow.
fn number(rows: &mut [SourceRow]) {
    let mut numbers = vec![0; rows.len()];
    for (number, source) in rows.iter().enumerate() {
        numbers[source.row.request_id as usize] = number as u64;
    }
    for (number, source) in rows.iter_mut().enumerate() {
        source.row.request_id = number as u64;
        source.row.parent_request = source
            .row
            .parent_request
            .map(|parent| numbers[parent as usize]);
    }
}

/// Links the requests of a session one after another.
fn link(rows: &mut [SourceRow]) {
    let mut last = HashMap::new();
    for SourceRow { row, .. } in rows {
        let (step, parent) = match last.get(&row.session_id) {
            None => (0, None),
            Some(&(step, before)) => (step + 1, Some(before)),
        };
        row.step = step;
        row.parent_request = parent;
        last.insert(row.session_id, (step, row.request_id));
    }
}

/// Rows that say again what an earlier one said, and prompts (of the others) that an earlier one of their session had.
/// Prompts of which nothing but the length is known are left out.
fn repeats(rows: &[SourceRow]) -> (u64, u64) {
    let (mut seen_rows, mut seen_prompts) = (HashSet::new(), HashSet::new());
    let (mut repeated_rows, mut repeated_prompts) = (0, 0);
    for SourceRow { row, .. } in rows {
        let Some(hash) = prompt_hash(&row.body) else {
            continue;
        };
        let prompt = (row.prompt_tokens, hash);
        let new_prompt = seen_prompts.insert((row.session_id, prompt));
        if !seen_rows.insert((prompt, row.arrival_us, row.output_tokens)) {
            repeated_rows += 1;
        } else if !new_prompt {
            repeated_prompts += 1;
        }
    }
    (repeated_rows, repeated_prompts)
}

/// What tells a prompt from others; `None` of one without tokens or blocks.
fn prompt_hash(body: &Body<'_>) -> Option<u64> {
    let mut hasher = Xxh3Default::new();
    match body {
        Body::Tokens { prompt, .. } => {
            prompt.first()?;
            for id in prompt.iter() {
                hasher.update(&id.to_le_bytes());
            }
        }
        // An id stands for all before it.
        Body::Blocks { prompt, .. } => hasher.update(&prompt.last()?.to_le_bytes()),
    }
    Some(hasher.digest())
}

fn hold(
    budget: &mut MemoryBudget,
    location: &SourceLocation,
    row: &Row<'_>,
) -> Result<(), ImportError> {
    let elements = |output: usize, prompt: usize| (output + prompt) as u64;
    let bytes = match &row.body {
        Body::Tokens { prompt, output } => {
            4 * elements(
                output.as_ref().map_or(0, |output| output.len()),
                prompt.len(),
            )
        }
        Body::Blocks { prompt, output } => {
            8 * elements(
                output.as_ref().map_or(0, |output| output.len()),
                prompt.len(),
            )
        }
    };
    budget
        .hold(bytes + size_of::<SourceRow>() as u64)
        .map_err(|reason| ImportError::Memory {
            location: location.to_string(),
            reason,
        })
}

/// Checks the block ids.
fn check_paths(content: Content, rows: &[SourceRow]) -> Result<(), ImportError> {
    let Content::Blocks { block_tokens } = content else {
        return Ok(());
    };
    let mut builder = WorkloadBuilder::new(block_tokens);
    let mut rejected = Rejected::default();
    for source in rows {
        if let Body::Blocks { prompt, .. } = &source.row.body {
            let checked: Result<(), BuildError> = builder.push(Request::default(), prompt);
            if let Err(fault) = checked {
                rejected.add(&source.location, &fault);
                break;
            }
        }
    }
    rejected.check()
}

/// Fails if something was changed or dropped.
fn refuse(notes: &[Note]) -> Result<(), ImportError> {
    let is_refused = |note: &&Note| matches!(note.action, Action::Changed | Action::Dropped);
    let refused: Vec<_> = notes.iter().filter(is_refused).cloned().collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(ImportError::Strict(refused)),
    }
}

fn meta(job: &ImportJob<'_>, content: Content) -> Meta {
    let name =
        |part: Option<&std::ffi::OsStr>| part.map(|name| name.to_string_lossy().into_owned());
    Meta {
        content,
        provenance: Provenance {
            name: name(job.input.file_stem()),
            source: name(job.input.file_name()),
            generator: Some(format!(
                "trace-gen import {}{}",
                job.format.name,
                job.options_as_given()
            )),
            seed: job.params.get(SEED.name).map(str::to_owned),
            license: None,
        },
    }
}
