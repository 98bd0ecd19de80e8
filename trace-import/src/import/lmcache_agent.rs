//! LMCache agent traces: JSON lines of `timestamp` (microseconds, Unix epoch), `input` and `output` (whole texts) and
//! `session_id`, one file a session, the lines not in the order of time.

use serde::Deserialize;
use trace::{Content, Row};

use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::{files, lines};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "lmcache-agent",
    about: "JSON lines with timestamp (us), input and output (texts) and session_id.",
    details: "\
A folder of .jsonl files (each may be packed as .zst) or one such file. Rows are sorted by time; prompts may be empty or
repeat one another. Gives a trace of tokens.",
    options: &[TOKENIZER, NO_OUTPUTS],
    read,
};

#[derive(Deserialize)]
struct Record {
    timestamp: u64,
    input: String,
    output: String,
    session_id: String,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let texts = Texts::new(&job.params);
    let mut sink = RowSink::default();
    let files = files(job.input, &[".jsonl"])?;
    for (done, file) in files.iter().enumerate() {
        (job.progress)(done, files.len());
        for line in lines(file)? {
            let (number, text) = line?;
            let location = SourceLocation::line(file, number);
            match row(&text, &texts, &mut sink) {
                Ok(row) => sink.push(location, row)?,
                Err(reason) => sink.reject(&location, &reason),
            }
        }
    }
    sink.start_clock_at_first();
    sink.note(
        Action::Format,
        "requests of a session are linked in order of arrival",
    );
    sink.finish(job, Content::Tokens, Order::Session, Links::ByArrival)
}

fn row(text: &str, texts: &Texts, sink: &mut RowSink) -> Result<Row<'static>, String> {
    let record: Record = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let arrival_us = i64::try_from(record.timestamp)
        .map_err(|_| format!("timestamp {} is not a time in us", record.timestamp))?;
    let mut row = Row {
        arrival_us,
        session_id: sink.session(&record.session_id),
        ..Row::default()
    };
    let (prompt, output) = (texts.tokens(&record.input), texts.tokens(&record.output));
    texts.fill(&mut row, prompt, output)?;
    Ok(row)
}
