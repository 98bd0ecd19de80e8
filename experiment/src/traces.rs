//! Traces: loading them, and what reports say of them.

use std::path::PathBuf;

use replay::TraceRecord;
use trace::{LoadOptions, Loaded};

use crate::error::ExperimentError;
use crate::progress::Progress;

/// Loads traces in the order of their paths. Traces of tokens are cut into blocks of `block_tokens` (default 16).
///
/// # Errors
/// If a file cannot be read or is no valid trace; the error names file, row and column.
pub fn load_traces(
    paths: &[PathBuf],
    block_tokens: Option<u32>,
    progress: &dyn Progress,
) -> Result<Vec<Loaded>, ExperimentError> {
    progress.stage("loading traces", paths.len() as u64);
    let options = LoadOptions {
        block_tokens,
        ..LoadOptions::default()
    };
    let load = |path: &PathBuf| {
        let loaded = trace::load(path, &options)?;
        progress.advance(1);
        Ok(loaded)
    };
    paths.iter().map(load).collect()
}

/// What a report says of a trace.
pub(crate) fn trace_record(loaded: &Loaded) -> TraceRecord {
    let workload = &loaded.workload;
    let prompt_tokens = |request: &trace::Request| u64::from(request.prompt_tokens);
    TraceRecord {
        path: loaded.path.display().to_string(),
        xxh3: format!("{:016x}", loaded.xxh3),
        content: loaded.content.name(),
        requests: workload.requests().len(),
        prompt_tokens: workload.requests().iter().map(prompt_tokens).sum(),
        blocks: workload.arena().len() as u64,
        distinct_blocks: workload.distinct_blocks(),
        block_tokens: workload.block_tokens(),
    }
}
