//! Rows in, Parquet out: streaming, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::atomic::AtomicFile;
use crate::check::RowChecker;
use crate::columns::{Buffers, arrow_schema};
use crate::error::TraceError;
use crate::meta::{Content, KEY_BLOCK_TOKENS, Meta};
use crate::row::Row;
use crate::schema::body_columns;
use crate::seal::{KEY_SEAL, SEALED_BY, UNSEALED, seal};

/// List elements buffered before they are encoded, and rows likewise.
const BATCH_ELEMENTS: usize = 1 << 20;
const BATCH_ROWS: usize = 1 << 14;

/// List elements in a row group: what a reader or writer holds at most, in compressed form.
const ROW_GROUP_ELEMENTS: usize = 1 << 23;

/// Pages are compressed one by one. Paths repeat earlier paths, so a page should hold many of them.
const PAGE_BYTES: usize = 8 << 20;

/// Writes a trace file row by row. The file appears under its name when [`TraceWriter::finish`] succeeds, else not at
/// all.
pub struct TraceWriter {
    path: PathBuf,
    checker: RowChecker,
    schema: Arc<Schema>,
    buffers: Buffers,
    parquet: ArrowWriter<AtomicFile>,
    group_elements: usize,
    rows: u64,
}

impl TraceWriter {
    /// Starts a trace that will become `path`.
    ///
    /// # Errors
    /// Where the file cannot be made, or a block trace has blocks of 0 tokens.
    pub fn create(path: &Path, meta: &Meta) -> Result<Self, TraceError> {
        if meta.content == (Content::Blocks { block_tokens: 0 }) {
            return Err(TraceError::Metadata {
                path: path.to_owned(),
                key: KEY_BLOCK_TOKENS,
                found: "0".to_owned(),
                expected: "at least 1".to_owned(),
            });
        }
        let file = AtomicFile::create(path).map_err(|source| TraceError::io(path, source))?;
        let schema = arrow_schema(meta);
        let parquet = ArrowWriter::try_new(file, schema.clone(), Some(properties(meta)))
            .map_err(|fault| write_error(path, fault))?;
        Ok(Self {
            path: path.to_owned(),
            checker: RowChecker::new(meta.content),
            schema,
            buffers: Buffers::new(meta.content),
            parquet,
            group_elements: 0,
            rows: 0,
        })
    }

    /// Adds the next row, which must not arrive before the one above.
    ///
    /// # Errors
    /// Where the row breaks a rule of the schema, or the file cannot be written.
    pub fn write(&mut self, row: &Row<'_>) -> Result<(), TraceError> {
        self.checker
            .check(row)
            .map_err(|fault| TraceError::value(&self.path, self.rows, fault))?;
        self.buffers.push(row);
        self.rows += 1;
        if self.buffers.rows >= BATCH_ROWS || self.buffers.elements >= BATCH_ELEMENTS {
            self.encode()?;
        }
        Ok(())
    }

    /// Writes what is left and gives the file its name; returns the number of rows.
    ///
    /// # Errors
    /// Where the file cannot be written or renamed.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.encode()?;
        let mut file = self
            .parquet
            .into_inner()
            .map_err(|fault| write_error(&self.path, fault))?;
        seal(file.as_file())
            .and_then(|()| file.commit())
            .map_err(|source| TraceError::io(&self.path, source))?;
        Ok(self.rows)
    }

    fn encode(&mut self) -> Result<(), TraceError> {
        self.group_elements += self.buffers.elements;
        let close_group = self.group_elements >= ROW_GROUP_ELEMENTS;
        let arrays = self.buffers.take();
        RecordBatch::try_new(self.schema.clone(), arrays)
            .map_err(ParquetError::from)
            .and_then(|batch| self.parquet.write(&batch))
            .and_then(|()| match close_group {
                true => self.parquet.flush(),
                false => Ok(()),
            })
            .map_err(|fault| write_error(&self.path, fault))?;
        if close_group {
            self.group_elements = 0;
        }
        Ok(())
    }
}

/// zstd; no dictionaries and no statistics for the ids, which are many and random.
fn properties(meta: &Meta) -> WriterProperties {
    let pairs = meta
        .pairs()
        .into_iter()
        .chain([(KEY_SEAL, UNSEALED.to_owned())])
        .map(|(key, value)| KeyValue::new(key.to_owned(), value))
        .collect();
    let builder = compressed()
        .set_created_by(SEALED_BY.to_owned())
        .set_key_value_metadata(Some(pairs));
    body_columns(meta.content)
        .into_iter()
        .fold(builder, |builder, column| {
            let leaf = ColumnPath::from(vec![
                column.name.to_owned(),
                "list".to_owned(),
                "element".to_owned(),
            ]);
            builder
                .set_column_dictionary_enabled(leaf.clone(), false)
                .set_column_statistics_enabled(leaf, EnabledStatistics::None)
        })
        .set_data_page_size_limit(PAGE_BYTES)
        .build()
}

/// What every file of this crate is written with: level 3 finds repeated paths that level 1 does not, a quarter of the
/// size on agent sessions, and reads no slower.
pub(crate) fn compressed() -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(3).unwrap_or_default();
    WriterProperties::builder().set_compression(Compression::ZSTD(level))
}

/// A failed write: the operating system's own words where it was the cause.
pub(crate) fn write_error(path: &Path, fault: ParquetError) -> TraceError {
    let source = match fault {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    TraceError::io(path, source)
}
