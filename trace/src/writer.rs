//! Rows in, Parquet out: streaming, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, Int64Builder, ListBuilder, PrimitiveBuilder, RecordBatch,
    StringDictionaryBuilder, UInt32Builder, UInt64Builder,
};
use arrow::datatypes::{Int32Type, Schema, UInt32Type, UInt64Type};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

use crate::atomic::AtomicFile;
use crate::error::TraceError;
use crate::row::{Body, Row, RowChecker};
use crate::schema::{self, Content, KEY_BLOCK_TOKENS, Meta};

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
        let schema = schema::arrow_schema(meta);
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
        let file = self
            .parquet
            .into_inner()
            .map_err(|fault| write_error(&self.path, fault))?;
        file.commit()
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
        .map(|(key, value)| KeyValue::new(key.to_owned(), value))
        .collect();
    let builder = compressed().set_key_value_metadata(Some(pairs));
    meta.content
        .body()
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

/// Column buffers of the rows not yet encoded.
struct Buffers {
    rows: usize,
    elements: usize,
    request_id: UInt64Builder,
    arrival_us: Int64Builder,
    session_id: UInt64Builder,
    step: UInt32Builder,
    parent_request: UInt64Builder,
    kind: StringDictionaryBuilder<Int32Type>,
    tenant: UInt32Builder,
    tool: StringDictionaryBuilder<Int32Type>,
    prompt_tokens: UInt32Builder,
    output_tokens: UInt32Builder,
    body: BodyBuffers,
    priority: UInt32Builder,
    priority_ttl_us: UInt64Builder,
    template_id: UInt64Builder,
    template_tokens: UInt32Builder,
    remaining_uses: UInt32Builder,
    steps_to_next: UInt32Builder,
}

impl Buffers {
    fn new(content: Content) -> Self {
        Self {
            rows: 0,
            elements: 0,
            request_id: UInt64Builder::new(),
            arrival_us: Int64Builder::new(),
            session_id: UInt64Builder::new(),
            step: UInt32Builder::new(),
            parent_request: UInt64Builder::new(),
            kind: StringDictionaryBuilder::new(),
            tenant: UInt32Builder::new(),
            tool: StringDictionaryBuilder::new(),
            prompt_tokens: UInt32Builder::new(),
            output_tokens: UInt32Builder::new(),
            body: match content {
                Content::Tokens => BodyBuffers::Tokens(Lists::new()),
                Content::Blocks { .. } => BodyBuffers::Blocks(Lists::new()),
            },
            priority: UInt32Builder::new(),
            priority_ttl_us: UInt64Builder::new(),
            template_id: UInt64Builder::new(),
            template_tokens: UInt32Builder::new(),
            remaining_uses: UInt32Builder::new(),
            steps_to_next: UInt32Builder::new(),
        }
    }

    /// Buffers a checked row.
    fn push(&mut self, row: &Row<'_>) {
        self.request_id.append_value(row.request_id);
        self.arrival_us.append_value(row.arrival_us);
        self.session_id.append_value(row.session_id);
        self.step.append_value(row.step);
        self.parent_request.append_option(row.parent_request);
        self.kind.append_value(&row.kind);
        self.tenant.append_value(row.tenant);
        self.tool.append_option(row.tool.as_deref());
        self.prompt_tokens.append_value(row.prompt_tokens);
        self.output_tokens.append_value(row.output_tokens);
        self.priority.append_option(row.hints.priority);
        self.priority_ttl_us
            .append_option(row.hints.priority_ttl_us);
        self.template_id.append_option(row.hints.template_id);
        self.template_tokens
            .append_option(row.hints.template_tokens);
        self.remaining_uses.append_option(row.hints.remaining_uses);
        self.steps_to_next.append_option(row.hints.steps_to_next);
        self.rows += 1;
        self.elements += self.body.push(&row.body);
    }

    /// The buffered rows as arrays in the order of the schema.
    fn take(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.elements = 0;
        let [prompt, output] = self.body.take();
        vec![
            Arc::new(self.request_id.finish()),
            Arc::new(self.arrival_us.finish()),
            Arc::new(self.session_id.finish()),
            Arc::new(self.step.finish()),
            Arc::new(self.parent_request.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.tenant.finish()),
            Arc::new(self.tool.finish()),
            Arc::new(self.prompt_tokens.finish()),
            Arc::new(self.output_tokens.finish()),
            prompt,
            output,
            Arc::new(self.priority.finish()),
            Arc::new(self.priority_ttl_us.finish()),
            Arc::new(self.template_id.finish()),
            Arc::new(self.template_tokens.finish()),
            Arc::new(self.remaining_uses.finish()),
            Arc::new(self.steps_to_next.finish()),
        ]
    }
}

enum BodyBuffers {
    Tokens(Lists<UInt32Type>),
    Blocks(Lists<UInt64Type>),
}

impl BodyBuffers {
    /// Buffers a body of the right content (rows are checked before); returns its list elements.
    fn push(&mut self, body: &Body<'_>) -> usize {
        match (self, body) {
            (Self::Tokens(lists), Body::Tokens { prompt, output }) => {
                lists.push(prompt, output.as_deref())
            }
            (Self::Blocks(lists), Body::Blocks { prompt, output }) => {
                lists.push(prompt, output.as_deref())
            }
            _ => 0,
        }
    }

    fn take(&mut self) -> [ArrayRef; 2] {
        match self {
            Self::Tokens(lists) => lists.take(),
            Self::Blocks(lists) => lists.take(),
        }
    }
}

/// The two list columns of prompt and output.
struct Lists<T: ArrowPrimitiveType> {
    prompt: ListBuilder<PrimitiveBuilder<T>>,
    output: ListBuilder<PrimitiveBuilder<T>>,
}

impl<T: ArrowPrimitiveType> Lists<T> {
    fn new() -> Self {
        let list = || {
            ListBuilder::new(PrimitiveBuilder::<T>::new()).with_field(schema::element(T::DATA_TYPE))
        };
        Self {
            prompt: list(),
            output: list(),
        }
    }

    fn push(&mut self, prompt: &[T::Native], output: Option<&[T::Native]>) -> usize {
        self.prompt.values().append_slice(prompt);
        self.prompt.append(true);
        self.output
            .values()
            .append_slice(output.unwrap_or_default());
        self.output.append(output.is_some());
        prompt.len() + output.map_or(0, <[_]>::len)
    }

    fn take(&mut self) -> [ArrayRef; 2] {
        [
            Arc::new(self.prompt.finish()),
            Arc::new(self.output.finish()),
        ]
    }
}
