//! What all importers share: reading text, ordering rows, checking them, writing them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use trace::{Body, BuildError, Content, Meta, Request, Row, TraceWriter, WorkloadBuilder};

use crate::error::{GenError, Place, Rejected};

/// What an import kept, changed and dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Requests written.
    pub requests: u64,
    /// Sessions they belong to.
    pub sessions: u64,
    /// What was changed or dropped, and why, in sentences.
    pub notes: Vec<String>,
}

/// A row and where it came from. Its `request_id` is its index in the order of reading.
pub(crate) struct SourceRow {
    pub(crate) place: Place,
    pub(crate) row: Row<'static>,
}

/// Sorts rows by arrival (stable: equal arrivals stay in the order of reading), numbers them in that order, checks that
/// every block id stands for its whole prefix, and writes them. Returns how many arrived before the row read before
/// them.
pub(crate) fn write_sorted(
    out: &Path,
    meta: &Meta,
    mut rows: Vec<SourceRow>,
) -> Result<u64, GenError> {
    let arrival_us = |source: &SourceRow| source.row.arrival_us;
    let pairs = rows.windows(2);
    let out_of_order = pairs.filter(|pair| arrival_us(&pair[1]) < arrival_us(&pair[0]));
    let out_of_order = out_of_order.count() as u64;
    rows.sort_by_key(arrival_us);
    number(&mut rows);
    check_paths(meta.content, &rows)?;
    let mut writer = TraceWriter::create(out, meta)?;
    for source in &rows {
        writer.write(&source.row)?;
    }
    writer.finish()?;
    Ok(out_of_order)
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

fn check_paths(content: Content, rows: &[SourceRow]) -> Result<(), GenError> {
    let Content::Blocks { block_tokens } = content else {
        return Ok(());
    };
    let mut builder = WorkloadBuilder::new(block_tokens);
    let mut rejected = Rejected::default();
    for source in rows {
        if let Body::Blocks { prompt, .. } = &source.row.body {
            let checked: Result<(), BuildError> = builder.push(Request::default(), prompt);
            if let Err(fault) = checked {
                rejected.add(&source.place, &fault);
                break;
            }
        }
    }
    rejected.check()
}

/// Opens a file as text, unpacked if its name ends in `.zst`.
pub(crate) fn open_text(path: &Path) -> Result<Box<dyn BufRead>, GenError> {
    let file = File::open(path).map_err(|source| GenError::io(path, source))?;
    let packed = path.extension().is_some_and(|extension| extension == "zst");
    if !packed {
        return Ok(Box::new(BufReader::new(file)));
    }
    let unpacked = zstd::Decoder::new(file).map_err(|source| GenError::io(path, source))?;
    Ok(Box::new(BufReader::new(unpacked)))
}

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, GenError> {
    let mut text = String::new();
    open_text(path)?
        .read_to_string(&mut text)
        .map_err(|source| GenError::io(path, source))?;
    Ok(text)
}

/// The lines of a file that are not blank, numbered from 1.
pub(crate) fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(usize, String), GenError>>, GenError> {
    let owned = path.to_owned();
    let lines = open_text(path)?.lines().enumerate();
    Ok(lines
        .map(move |(index, line)| match line {
            Ok(line) => Ok((index + 1, line)),
            Err(source) => Err(GenError::io(&owned, source)),
        })
        .filter(|line| !matches!(line, Ok((_, text)) if text.trim().is_empty())))
}

/// Microseconds of a time in units of `unit_us` microseconds, if it is one that a trace can hold.
pub(crate) fn microseconds(time: f64, unit_us: f64) -> Option<i64> {
    /// Beyond this a float no longer tells microseconds apart: 285 years.
    const LATEST_US: f64 = 9_007_199_254_740_992.0;
    let us = (time * unit_us).round();
    (0.0..=LATEST_US).contains(&us).then_some(us as i64)
}
