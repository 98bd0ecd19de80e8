//! Parquet in, checked rows out: streaming, in bounded memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;

use crate::check::RowChecker;
use crate::columns::{Columns, columns};
use crate::error::TraceError;
use crate::meta::{Content, KEY_CONTENT, Meta};
use crate::row::Row;
use crate::schema::{Column, PROMPT, PROMPT_BLOCKS, body_columns};

/// List elements to decode at a time, about: what bounds the memory.
const BATCH_ELEMENTS: u64 = 1 << 20;
const BATCH_ROWS: u64 = 1 << 12;

/// Reads a trace file row by row and checks every row.
pub struct TraceReader {
    path: PathBuf,
    meta: Meta,
    total_rows: u64,
    total_elements: u64,
    checker: RowChecker,
    batches: ParquetRecordBatchReader,
    batch: Option<Columns>,
    at: usize,
    rows: u64,
}

impl TraceReader {
    /// Opens a trace. `block_tokens` serves a block trace whose metadata does not state its block size, and must
    /// equal it where it does.
    ///
    /// # Errors
    /// Where the file cannot be read, is not Parquet, or lacks a column or has one of a wrong type.
    pub fn open(path: &Path, block_tokens: Option<u32>) -> Result<Self, TraceError> {
        guarded(path, || Self::try_open(path, block_tokens))
    }

    fn try_open(path: &Path, block_tokens: Option<u32>) -> Result<Self, TraceError> {
        let file = open_parquet(path)?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|fault| TraceError::not_parquet(path, &fault))?;
        let meta = read_meta(path, builder.metadata(), builder.schema(), block_tokens)?;
        check_columns(path, builder.schema(), meta.content)?;
        let (total_rows, total_elements, batch_rows) = sizes(builder.metadata(), meta.content);
        let wanted = columns(meta.content);
        let roots = (0..builder.schema().fields().len())
            .filter(|&root| {
                let name = builder.schema().field(root).name();
                wanted.iter().any(|column| column.name == name)
            })
            .collect::<Vec<_>>();
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let batches = builder
            .with_projection(mask)
            .with_batch_size(batch_rows)
            .build()
            .map_err(|fault| TraceError::not_parquet(path, &fault))?;
        Ok(Self {
            path: path.to_owned(),
            checker: RowChecker::new(meta.content),
            meta,
            total_rows,
            total_elements,
            batches,
            batch: None,
            at: 0,
            rows: 0,
        })
    }

    /// What the file's metadata says.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Rows of the file.
    pub fn total_rows(&self) -> u64 {
        self.total_rows
    }

    /// Tokens or block ids of the file's two list columns, as the file's footer counts them.
    pub fn total_elements(&self) -> u64 {
        self.total_elements
    }

    /// The next row, `None` after the last.
    ///
    /// # Errors
    /// Where the file is damaged or the row breaks a rule of the schema.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        while self
            .batch
            .as_ref()
            .is_none_or(|batch| self.at == batch.rows())
        {
            if !self.next_batch()? {
                return Ok(None);
            }
        }
        let Some(batch) = &self.batch else {
            return Ok(None);
        };
        let row = batch.row(self.at);
        self.checker
            .check(&row)
            .map_err(|fault| TraceError::value(&self.path, self.rows, fault))?;
        self.at += 1;
        self.rows += 1;
        Ok(Some(row))
    }

    fn next_batch(&mut self) -> Result<bool, TraceError> {
        let Self {
            path,
            meta,
            batches,
            rows,
            ..
        } = self;
        let columns = guarded(path, || {
            let Some(batch) = batches.next() else {
                return Ok(None);
            };
            let batch = batch.map_err(|fault| {
                TraceError::not_parquet(path, &format!("after row {rows}: {fault}"))
            })?;
            let columns = Columns::decode(&batch, meta.content);
            let fault = |(row, fault)| TraceError::value(path, *rows + row as u64, fault);
            columns.map(Some).map_err(fault)
        })?;
        self.at = 0;
        self.batch = columns;
        Ok(self.batch.is_some())
    }
}

/// Runs a step of decoding. The decoder checks most of what it reads, but panics on some damaged files.
pub(crate) fn guarded<T>(
    path: &Path,
    step: impl FnOnce() -> Result<T, TraceError>,
) -> Result<T, TraceError> {
    std::panic::catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        let reason = format!("damaged: the decoder gave up ({message})");
        Err(TraceError::not_parquet(path, &reason))
    })
}

/// Opens a file that begins and ends as Parquet does; says so in plain words where it does not.
pub(crate) fn open_parquet(path: &Path) -> Result<File, TraceError> {
    const MAGIC: [u8; 4] = *b"PAR1";
    let io = |source| TraceError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        return Err(TraceError::not_parquet(path, &"the file is empty"));
    }
    let mut ends = [[0; 4]; 2];
    if length >= 12 {
        file.read_exact(&mut ends[0]).map_err(io)?;
        file.seek(SeekFrom::End(-4)).map_err(io)?;
        file.read_exact(&mut ends[1]).map_err(io)?;
        file.rewind().map_err(io)?;
    }
    match ends {
        [MAGIC, MAGIC] => Ok(file),
        [MAGIC, _] => Err(TraceError::not_parquet(
            path,
            &"the file is cut short (its footer is missing)",
        )),
        _ => Err(TraceError::not_parquet(
            path,
            &"it does not begin with PAR1; other formats need an import first",
        )),
    }
}

fn read_meta(
    path: &Path,
    parquet: &ParquetMetaData,
    columns: &Schema,
    asked_block_tokens: Option<u32>,
) -> Result<Meta, TraceError> {
    let value = |key: &str| {
        let pairs = parquet.file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.clone()
    };
    let has = |column: &Column| columns.field_with_name(column.name).is_ok();
    let by_columns = match (has(&PROMPT), has(&PROMPT_BLOCKS)) {
        (true, false) => Some("tokens"),
        (false, true) => Some("blocks"),
        (false, false) if value(KEY_CONTENT).is_none() => {
            return Err(TraceError::MissingColumn {
                path: path.to_owned(),
                column: format!("{}` or `{}", PROMPT.name, PROMPT_BLOCKS.name),
                expected: "list<u32> of tokens or list<u64> of block ids",
            });
        }
        _ => None,
    };
    let wrong = |asked, expected: String| TraceError::BlockTokens {
        path: path.to_owned(),
        asked,
        expected,
    };
    let meta = Meta::read(value, by_columns, asked_block_tokens).map_err(|fault| {
        TraceError::Metadata {
            path: path.to_owned(),
            key: fault.key,
            found: fault.found,
            expected: fault.expected,
        }
    })?;
    match (meta.content, asked_block_tokens) {
        (Content::Blocks { .. }, Some(0)) => Err(wrong(0, "at least 1".to_owned())),
        (Content::Blocks { block_tokens }, Some(asked)) if asked != block_tokens => Err(wrong(
            asked,
            format!("{block_tokens}, the size of this block trace's blocks"),
        )),
        _ => Ok(meta),
    }
}

fn check_columns(path: &Path, found: &Schema, content: Content) -> Result<(), TraceError> {
    for column in columns(content) {
        let expected = column.kind.expected();
        match found.field_with_name(column.name) {
            Ok(field) if !column.kind.accepts(field.data_type()) => {
                return Err(TraceError::ColumnType {
                    path: path.to_owned(),
                    column: column.name,
                    found: field.data_type().to_string(),
                    expected,
                });
            }
            Err(_) if column.required => {
                return Err(TraceError::MissingColumn {
                    path: path.to_owned(),
                    column: column.name.to_owned(),
                    expected,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rows, list elements, and how many rows to decode at a time so that a batch holds about [`BATCH_ELEMENTS`].
fn sizes(parquet: &ParquetMetaData, content: Content) -> (u64, u64, usize) {
    let lists = body_columns(content).map(|column| column.name);
    let (mut rows, mut elements, mut batch_rows) = (0, 0, BATCH_ROWS);
    for group in parquet.row_groups() {
        let group_rows = u64::try_from(group.num_rows()).unwrap_or(0);
        let group_elements = group
            .columns()
            .iter()
            .filter(|chunk| {
                chunk
                    .column_path()
                    .parts()
                    .first()
                    .is_some_and(|root| lists.contains(&root.as_str()))
            })
            .map(|chunk| u64::try_from(chunk.num_values()).unwrap_or(0))
            .sum::<u64>();
        let mean = group_elements / group_rows.max(1) + 1;
        batch_rows = batch_rows.min((BATCH_ELEMENTS / mean).max(1));
        rows += group_rows;
        elements += group_elements;
    }
    (rows, elements, usize::try_from(batch_rows).unwrap_or(1))
}
