//! Parquet in, checked rows out: streaming, in bounded memory.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::Schema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::column::page::PageReader;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::check::RowChecker;
use crate::columns::{Columns, columns};
use crate::error::TraceError;
use crate::guard::{guarded, open_parquet};
use crate::memory::MemoryBudget;
use crate::meta::{Content, KEY_CONTENT, Meta};
use crate::row::Row;
use crate::schema::{Column, PROMPT, PROMPT_BLOCKS, body_columns};
use crate::seal::{FileHash, SEALED_BY, hash_file};

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
    sealed: bool,
    xxh3: Option<u64>,
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
        let (file, footer) = open_parquet(path)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer);
        check_names(path, builder.schema())?;
        let meta = read_meta(path, builder.metadata(), builder.schema(), block_tokens)?;
        check_columns(path, builder.schema(), meta.content)?;
        let sealed = builder.metadata().file_metadata().created_by() == Some(SEALED_BY);
        let (total_rows, total_elements, batch_rows) = sizes(builder.metadata(), meta.content);
        check_total(path, builder.metadata(), total_rows)?;
        let wanted = columns(meta.content);
        check_pages(path, builder.metadata(), &wanted)?;
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
            sealed,
            xxh3: None,
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

    /// xxh3 (64 bit) of the file's bytes, once the last row was read.
    pub(crate) fn xxh3(&self) -> Option<u64> {
        self.xxh3
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
        if self.batch.is_none() {
            self.check_end()?;
        }
        Ok(self.batch.is_some())
    }

    /// After the last row: whether these were all, and the bytes those that were written.
    fn check_end(&mut self) -> Result<(), TraceError> {
        if self.rows != self.total_rows {
            let reason = format!(
                "{} rows read; its footer says {}",
                self.rows, self.total_rows
            );
            return Err(TraceError::not_parquet(&self.path, &reason));
        }
        let io = |fault| TraceError::io(&self.path, fault);
        let mut file = File::open(&self.path).map_err(io)?;
        let FileHash { xxh3, intact } = hash_file(&mut file).map_err(io)?;
        if intact == Some(false) || (self.sealed && intact.is_none()) {
            let reason = "damaged: its bytes are not those that were written (checksum)";
            return Err(TraceError::not_parquet(&self.path, &reason));
        }
        self.xxh3 = Some(xxh3);
        Ok(())
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

/// The footer counts the rows twice.
fn check_total(path: &Path, parquet: &ParquetMetaData, in_groups: u64) -> Result<(), TraceError> {
    let total = parquet.file_metadata().num_rows();
    if u64::try_from(total) == Ok(in_groups) {
        return Ok(());
    }
    let reason = format!("its row groups have {in_groups} rows; its footer says {total}");
    Err(TraceError::not_parquet(path, &reason))
}

/// Every column that is read must be there once.
fn check_names(path: &Path, found: &Schema) -> Result<(), TraceError> {
    let mut names = HashSet::new();
    match found
        .fields()
        .iter()
        .find(|field| !names.insert(field.name()))
    {
        None => Ok(()),
        Some(twice) => {
            let reason = format!("two columns are named `{}`", twice.name());
            Err(TraceError::not_parquet(path, &reason))
        }
    }
}

/// Bytes that decoding takes for each element of a list: its value, its levels, and the converted copy.
const DECODED_BYTES: u64 = 24;

/// Before anything is decoded: a row group must fit into memory, as a single row may hold all of it, and its pages must
/// hold as many values as its footer says.
fn check_pages(
    path: &Path,
    parquet: &ParquetMetaData,
    wanted: &[&'static Column],
) -> Result<(), TraceError> {
    let file = Arc::new(File::open(path).map_err(|fault| TraceError::io(path, fault))?);
    let damaged = |reason: &dyn std::fmt::Display| TraceError::not_parquet(path, reason);
    let file_bytes = file
        .metadata()
        .map_err(|fault| TraceError::io(path, fault))?
        .len();
    for group in parquet.row_groups() {
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let chunks = group.columns().iter().filter(|chunk| {
            let root = chunk.column_path().parts().first();
            root.is_some_and(|root| wanted.iter().any(|column| column.name == root))
        });
        let mut budget = MemoryBudget::of_input(file_bytes);
        for chunk in chunks {
            let values = u64::try_from(chunk.num_values()).unwrap_or(u64::MAX);
            budget
                .hold(values.saturating_mul(DECODED_BYTES))
                .map_err(|over| TraceError::memory(path, over))?;
            let mut pages = SerializedPageReader::new(file.clone(), chunk, rows, None)
                .map_err(|fault| damaged(&fault))?;
            let mut found = 0_u64;
            while let Some(page) = pages.peek_next_page().map_err(|fault| damaged(&fault))? {
                found += page.num_levels.unwrap_or(0) as u64;
                pages.skip_next_page().map_err(|fault| damaged(&fault))?;
            }
            if found != values {
                let column = chunk.column_path();
                let reason = format!("{column} has {found} values; its footer says {values}");
                return Err(damaged(&reason));
            }
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
