//! The per-request result table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Builder, RecordBatch, UInt32Builder, UInt64Builder};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

use crate::atomic::AtomicFile;
use crate::error::TraceError;
use crate::writer::{compressed, write_error};

const BATCH_ROWS: usize = 1 << 16;

/// What became of one request: one row of the result table, in the order of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestResult {
    /// The trace's id of the request.
    pub request_id: u64,
    /// Prompt tokens served from the cache.
    pub hit_tokens: u32,
    /// Prefill seconds they saved.
    pub recovered_seconds: f64,
    /// Time to the first token, in seconds.
    pub ttft_seconds: f64,
}

/// Writes a Parquet table of [`RequestResult`]s. The file appears when [`ResultWriter::finish`] succeeds, else not at
/// all.
pub struct ResultWriter {
    path: PathBuf,
    schema: Arc<Schema>,
    parquet: ArrowWriter<AtomicFile>,
    rows: usize,
    request_id: UInt64Builder,
    hit_tokens: UInt32Builder,
    recovered_seconds: Float64Builder,
    ttft_seconds: Float64Builder,
}

impl ResultWriter {
    /// Starts a table that will become `path`.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        let file = AtomicFile::create(path).map_err(|source| TraceError::io(path, source))?;
        let schema = Arc::new(Schema::new(vec![
            Field::new("request_id", DataType::UInt64, false),
            Field::new("hit_tokens", DataType::UInt32, false),
            Field::new("recovered_seconds", DataType::Float64, false),
            Field::new("ttft_seconds", DataType::Float64, false),
        ]));
        let parquet = ArrowWriter::try_new(file, schema.clone(), Some(compressed().build()))
            .map_err(|fault| write_error(path, fault))?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            parquet,
            rows: 0,
            request_id: UInt64Builder::new(),
            hit_tokens: UInt32Builder::new(),
            recovered_seconds: Float64Builder::new(),
            ttft_seconds: Float64Builder::new(),
        })
    }

    /// Adds the next row.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&mut self, result: &RequestResult) -> Result<(), TraceError> {
        self.request_id.append_value(result.request_id);
        self.hit_tokens.append_value(result.hit_tokens);
        self.recovered_seconds
            .append_value(result.recovered_seconds);
        self.ttft_seconds.append_value(result.ttft_seconds);
        self.rows += 1;
        match self.rows >= BATCH_ROWS {
            true => self.encode(),
            false => Ok(()),
        }
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// Where the file cannot be written or renamed.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.encode()?;
        let file = self
            .parquet
            .into_inner()
            .map_err(|fault| write_error(&self.path, fault))?;
        file.commit()
            .map_err(|source| TraceError::io(&self.path, source))
    }

    fn encode(&mut self) -> Result<(), TraceError> {
        self.rows = 0;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(self.request_id.finish()),
            Arc::new(self.hit_tokens.finish()),
            Arc::new(self.recovered_seconds.finish()),
            Arc::new(self.ttft_seconds.finish()),
        ];
        RecordBatch::try_new(self.schema.clone(), arrays)
            .map_err(ParquetError::from)
            .and_then(|batch| self.parquet.write(&batch))
            .map_err(|fault| write_error(&self.path, fault))
    }
}
