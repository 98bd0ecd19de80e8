//! Tables: comma-separated columns, of any names; and two well-known ones, which have lengths and arrivals only.

use std::borrow::Cow;

use csv::{ReaderBuilder, StringRecord, Terminator, Trim};
use params::{Domain, Param};
use trace::{Body, Content, Row};

use super::clock::{TIME_UNIT, Unit};
use super::format::{ImportFormat, ImportJob};
use super::ids::{IDENTITY, IDS, Invented, full_blocks, settle};
use super::options::{block_tokens, option_fault};
use super::sink::{Links, Order, RowSink};
use super::source::open;
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static AZURE: ImportFormat = ImportFormat {
    name: "azure",
    about: "Azure LLM inference traces: TIMESTAMP (date), ContextTokens, GeneratedTokens.",
    details: "\
The format has lengths and arrivals only. There is no prefix identity in it, so nothing to replay unless one is invented;
the import fails until --identity says how.",
    options: &[IDENTITY, block_tokens("16")],
    read: |job| {
        let map = "arrival=TIMESTAMP,prompt_tokens=ContextTokens,output_tokens=GeneratedTokens";
        read(job, map, Unit::Date)
    },
};

pub(super) static BURSTGPT: ImportFormat = ImportFormat {
    name: "burstgpt",
    about: "BurstGPT traces: Timestamp (s), Request tokens, Response tokens, Log Type.",
    details: "\
The format has lengths and arrivals only. There is no prefix identity in it, so nothing to replay unless one is invented;
the import fails until --identity says how. The log type becomes the request's kind. Failed requests have an empty response.",
    options: &[IDENTITY, block_tokens("16")],
    read: |job| {
        let map = "arrival=Timestamp,prompt_tokens=Request tokens,output_tokens=Response tokens,kind=Log Type";
        read(job, map, Unit::Us(1e6))
    },
};

pub(super) static CSV: ImportFormat = ImportFormat {
    name: "csv",
    about: "A table with a header; --map says which column is what.",
    details: "\
Roles of columns: arrival (needed), prompt_tokens, output_tokens, session, kind, tenant, tool, ids (of the prompt's
blocks, separated by spaces, commas, semicolons or bars), prompt and output (texts). What a prompt consists of comes from
a column of ids (with prompt_tokens), or of texts, or invented with --identity (with prompt_tokens).
Example: --map arrival=time,prompt_tokens=in,output_tokens=out,session=user,ids=blocks --time-unit ms",
    options: &[
        MAP, TIME_UNIT, DELIMITER, IDENTITY, IDS, block_tokens("16"), TOKENIZER, NO_OUTPUTS,
    ],
    read: |job| {
        let map = job.params.get(MAP.name).unwrap_or_default().to_owned();
        let unit = Unit::new(&job.params);
        read(job, &map, unit)
    },
};

const MAP: Param = Param {
    name: "map",
    help: "Which column has which role.",
    domain: Domain::Text("ROLE=COLUMN,..."),
    default: "arrival=arrival,prompt_tokens=prompt_tokens,output_tokens=output_tokens",
};

const DELIMITER: Param = Param {
    name: "delimiter",
    help: "What separates columns: one character, or `tab`.",
    domain: Domain::Text("CHAR"),
    default: ",",
};

/// Index of the column of each role.
#[derive(Default)]
struct Columns {
    arrival: usize,
    prompt_tokens: Option<usize>,
    output_tokens: Option<usize>,
    session: Option<usize>,
    kind: Option<usize>,
    tenant: Option<usize>,
    tool: Option<usize>,
    ids: Option<usize>,
    prompt: Option<usize>,
    output: Option<usize>,
}

/// Where the content of prompts comes from.
enum Source {
    Ids { column: usize, block_tokens: u32 },
    Texts { column: usize, texts: Texts },
    Invented(Invented),
}

fn read(job: &mut ImportJob<'_>, map: &str, unit: Unit) -> Result<Imported, ImportError> {
    let delimiter = match job.params.get(DELIMITER.name) {
        None => b',',
        Some("tab") => b'\t',
        Some(text) if text.len() == 1 => text.as_bytes()[0],
        Some(text) => return Err(option_fault(&DELIMITER, text)),
    };
    let mut table = ReaderBuilder::new()
        .delimiter(delimiter)
        // Ending records at the line feed keeps the count of lines right where a carriage return stands before it.
        .terminator(Terminator::Any(b'\n'))
        .trim(Trim::All)
        .from_reader(open(job.input)?);
    let fault = |fault: csv::Error| ImportError::Input {
        path: job.input.to_owned(),
        problem: fault.to_string(),
    };
    let header = table.headers().map_err(fault)?.clone();
    let columns = columns(job, &header, map)?;
    let block_tokens = job.block_tokens();
    let mut source = match (columns.ids, columns.prompt) {
        (Some(column), _) => Source::Ids {
            column,
            block_tokens,
        },
        (None, Some(column)) => Source::Texts {
            column,
            texts: Texts::new(&job.params),
        },
        (None, None) => Source::Invented(Invented::new(job, block_tokens)?),
    };
    let mut rows = Rows {
        columns,
        unit,
        partial: 0,
        sink: RowSink::of_file(job.input),
    };
    let mut record = StringRecord::new();
    while table.read_record(&mut record).map_err(fault)? {
        let line = record.position().map_or(0, csv::Position::line) as usize;
        let location = SourceLocation::line(job.input, line);
        match rows.row(&record, &mut source) {
            Ok(row) => rows.sink.push(location, row)?,
            Err(reason) => rows.sink.reject(&location, &reason),
        }
    }
    rows.finish(job, &source, block_tokens)
}

struct Rows {
    columns: Columns,
    unit: Unit,
    partial: u64,
    sink: RowSink,
}

impl Rows {
    fn row(&mut self, record: &StringRecord, source: &mut Source) -> Result<Row<'static>, String> {
        let columns = &self.columns;
        let text = |column: Option<usize>| column.and_then(|column| record.get(column));
        let count = |name: &str, column| match text(column) {
            None => Ok(0),
            Some(text) => text.trim().parse::<u32>().map_err(|_| {
                format!(
                    "{name} `{text}`; expected a whole number from 0 to {}",
                    u32::MAX
                )
            }),
        };
        let arrival = record.get(columns.arrival).unwrap_or_default();
        let mut row = Row {
            arrival_us: self.unit.of_text("arrival", arrival)?,
            kind: Cow::Owned(text(columns.kind).unwrap_or_default().to_owned()),
            tenant: count("tenant", columns.tenant)?,
            tool: text(columns.tool)
                .filter(|name| !name.is_empty())
                .map(|name| Cow::Owned(name.to_owned())),
            prompt_tokens: count("prompt_tokens", columns.prompt_tokens)?,
            output_tokens: count("output_tokens", columns.output_tokens)?,
            ..Row::default()
        };
        match source {
            Source::Invented(invented) => invented.fill(&mut row)?,
            Source::Texts { column, texts } => {
                let prompt = texts.tokens(record.get(*column).unwrap_or_default());
                let output = texts.tokens(text(columns.output).unwrap_or_default());
                texts.fill(&mut row, prompt, output)?;
            }
            Source::Ids {
                column,
                block_tokens,
            } => {
                let ids = parse_ids(record.get(*column).unwrap_or_default())?;
                let (ids, dropped) = full_blocks(ids, row.prompt_tokens, *block_tokens)?;
                self.partial += u64::from(dropped);
                row.body = Body::Blocks {
                    prompt: Cow::Owned(ids),
                    output: None,
                };
            }
        }
        row.session_id = match text(columns.session) {
            Some(name) => self.sink.session(name),
            None => self.sink.new_session(),
        };
        Ok(row)
    }

    fn finish(
        mut self,
        job: &ImportJob<'_>,
        source: &Source,
        block_tokens: u32,
    ) -> Result<Imported, ImportError> {
        self.sink.start_clock_at_first();
        let content = match source {
            Source::Texts { .. } => Content::Tokens,
            Source::Ids { .. } => {
                settle(&mut self.sink, &job.params, block_tokens);
                self.sink.count(
                    Action::Format,
                    self.partial,
                    "requests end in a partial last block, which is dropped: an engine caches full blocks only",
                );
                Content::Blocks { block_tokens }
            }
            Source::Invented(_) => {
                let how = job.params.get(IDENTITY.name).unwrap_or_default();
                let note = format!(
                    "prompts are invented ({how}): hit rates are those of the invention, not of the traffic"
                );
                self.sink.note(Action::Format, note);
                Content::Blocks { block_tokens }
            }
        };
        self.sink
            .finish(job, content, Order::File, Links::ByArrival)
    }
}

fn columns(job: &ImportJob<'_>, header: &StringRecord, map: &str) -> Result<Columns, ImportError> {
    let fault = |problem: String| ImportError::Input {
        path: job.input.to_owned(),
        problem,
    };
    let mut columns = Columns::default();
    let mut arrival = None;
    for pair in map.split(',') {
        let (role, name) = pair
            .split_once('=')
            .ok_or_else(|| fault(format!("--map has `{pair}`; expected ROLE=COLUMN")))?;
        let location = match role.trim() {
            "arrival" => &mut arrival,
            "prompt_tokens" => &mut columns.prompt_tokens,
            "output_tokens" => &mut columns.output_tokens,
            "session" => &mut columns.session,
            "kind" => &mut columns.kind,
            "tenant" => &mut columns.tenant,
            "tool" => &mut columns.tool,
            "ids" => &mut columns.ids,
            "prompt" => &mut columns.prompt,
            "output" => &mut columns.output,
            other => {
                return Err(fault(format!(
                    "--map has the role `{other}`; expected arrival, prompt_tokens, output_tokens, session, kind, \
                     tenant, tool, ids, prompt or output"
                )));
            }
        };
        let found = header
            .iter()
            .position(|column| column.trim() == name.trim());
        let names = || header.iter().collect::<Vec<_>>().join(", ");
        let missing = || {
            fault(format!(
                "no column `{name}` for {role}; there are: {}",
                names()
            ))
        };
        *location = Some(found.ok_or_else(missing)?);
    }
    columns.arrival =
        arrival.ok_or_else(|| fault("--map names no column for arrival".to_owned()))?;
    if columns.prompt.is_none() && columns.prompt_tokens.is_none() {
        return Err(fault("--map names no column for prompt_tokens".to_owned()));
    }
    Ok(columns)
}

fn parse_ids(text: &str) -> Result<Vec<u64>, String> {
    let separates = |c: char| c.is_whitespace() || ",;|[]".contains(c);
    let words = text.split(separates).filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse()
                .map_err(|_| format!("id `{word}`; expected a whole number from 0 on"))
        })
        .collect()
}
