//! A trace file into its loaded form.

use std::path::{Path, PathBuf};

use policy_api::{Hints, Request};

use crate::columns::COLUMN;
use crate::error::{Fault, TraceError};
use crate::memory::MemoryBudget;
use crate::meta::Content;
use crate::reader::TraceReader;
use crate::row::{Body, Row, prompt_blocks};
use crate::token_paths::{SharedTokens, TokenPaths};
use crate::workload::{BuildError, Workload, WorkloadBuilder};

/// Block size of token traces where the caller does not say.
pub const DEFAULT_BLOCK_TOKENS: u32 = 16;

/// How to load a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// Tokens of a block: for a token trace 16 if `None`; for a block trace the trace's own, and an error if another
    /// is asked for.
    pub block_tokens: Option<u32>,
    /// Compare tokens wherever block ids are equal, so that a hash collision is an error. Slower; for tests.
    pub detect_collisions: bool,
}

/// A loaded trace and what identifies its file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The requests and their paths.
    pub workload: Workload,
    /// Whether the file holds tokens or blocks.
    pub content: Content,
    /// The file.
    pub path: PathBuf,
    /// xxh3 (64 bit) of the file's bytes.
    pub xxh3: u64,
}

/// Loads a trace file.
///
/// ```
/// use std::path::Path;
/// use trace::{LoadOptions, load};
///
/// let loaded = load(Path::new("../examples/agent.parquet"), &LoadOptions::default())?;
/// let workload = &loaded.workload;
/// let mut hit_blocks = 0;
/// for request in workload.requests() {
///     // Dense ids of the request's blocks, the prompt's first. A block's id implies its whole prefix.
///     assert_eq!(workload.path(request).len(), request.path_blocks as usize);
///     // What an infinite cache would hit: the leading blocks that earlier requests touched.
///     hit_blocks += request.seen_blocks.min(request.usable_blocks(workload.block_tokens()));
/// }
/// assert_eq!((workload.requests().len(), hit_blocks), (1_269, 996_884));
/// # Ok::<(), trace::TraceError>(())
/// ```
///
/// # Errors
/// Where the file cannot be read or breaks a rule of the schema; the error names file, row and column.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, TraceError> {
    let mut reader = TraceReader::open(path, options.block_tokens)?;
    let meta = reader.meta().clone();
    let workload = match meta.content {
        Content::Blocks { block_tokens } => load_blocks(path, &mut reader, block_tokens)?,
        Content::Tokens => load_tokens(path, &mut reader, options)?,
    };
    Ok(Loaded {
        workload: workload.finish(meta.provenance),
        content: meta.content,
        path: path.to_owned(),
        xxh3: reader.xxh3().unwrap_or_default(),
    })
}

fn load_blocks(
    path: &Path,
    reader: &mut TraceReader,
    block_tokens: u32,
) -> Result<WorkloadBuilder, TraceError> {
    let mut loader = Loader::new(path, block_tokens, reader.total_elements());
    let mut ids = Vec::new();
    while let Some(row) = reader.next_row()? {
        let Body::Blocks { prompt, output } = &row.body else {
            continue;
        };
        match output.as_deref() {
            None | Some([]) => loader.push(&row, prompt)?,
            Some(output) => {
                ids.clear();
                ids.extend_from_slice(prompt);
                ids.extend_from_slice(output);
                loader.push(&row, &ids)?;
            }
        }
    }
    Ok(loader.builder)
}

fn load_tokens(
    path: &Path,
    reader: &mut TraceReader,
    options: &LoadOptions,
) -> Result<WorkloadBuilder, TraceError> {
    let block_tokens = options.block_tokens.unwrap_or(DEFAULT_BLOCK_TOKENS);
    if block_tokens == 0 {
        return Err(TraceError::BlockTokens {
            path: path.to_owned(),
            asked: 0,
            expected: "at least 1".to_owned(),
        });
    }
    let blocks = reader.total_elements() / u64::from(block_tokens);
    let mut loader = Loader::new(path, block_tokens, blocks);
    let mut paths = TokenPaths::new(block_tokens);
    let mut shared = SharedTokens::new(block_tokens);
    while let Some(row) = reader.next_row()? {
        let Body::Tokens { prompt, output } = &row.body else {
            continue;
        };
        paths.set(prompt, output.as_deref());
        loader.push(&row, paths.ids()).map_err(as_collision)?;
        loader.compare_tokens(&row, &paths, &mut shared, options.detect_collisions)?;
    }
    Ok(loader.builder)
}

/// Feeds rows to a builder, and words what goes wrong.
struct Loader<'a> {
    path: &'a Path,
    budget: MemoryBudget,
    row: u64,
    builder: WorkloadBuilder,
}

impl<'a> Loader<'a> {
    fn new(path: &'a Path, block_tokens: u32, blocks: u64) -> Self {
        // A file that cannot be asked for its size fails elsewhere.
        let file_bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        let budget = MemoryBudget::of_input(file_bytes);
        let room = blocks.min(budget.limit_bytes() / 16);
        Self {
            path,
            budget,
            row: 0,
            builder: WorkloadBuilder::with_capacity(block_tokens, room),
        }
    }

    fn push(&mut self, row: &Row<'_>, ids: &[u64]) -> Result<(), TraceError> {
        let fault = |fault| TraceError::value(self.path, self.row, fault);
        let request = request(&mut self.builder, row).map_err(fault)?;
        let at = self.row;
        let before = self.builder.held_bytes();
        self.builder
            .push(request, ids)
            .map_err(|reason| TraceError::Path {
                path: self.path.to_owned(),
                row: at,
                reason,
            })?;
        self.budget
            .hold(self.builder.held_bytes() - before)
            .map_err(|over| TraceError::memory(self.path, over))?;
        if row.hints != Hints::default() {
            self.builder.hint(row.hints);
        }
        self.row += 1;
        Ok(())
    }

    /// Records what the request pushed last lost to rounding: its longest common token prefix with an earlier path,
    /// without the last prompt token, minus the whole blocks in it.
    fn compare_tokens(
        &mut self,
        row: &Row<'_>,
        paths: &TokenPaths,
        shared: &mut SharedTokens,
        detect_collisions: bool,
    ) -> Result<(), TraceError> {
        let Some((request, path)) = self.builder.last() else {
            return Ok(());
        };
        let seen = request.seen_blocks as usize;
        let block_tokens = self.builder.block_tokens() as usize;
        if detect_collisions && let Some(position) = shared.collision(paths.tokens(), path, seen) {
            return Err(TraceError::Collision {
                path: self.path.to_owned(),
                row: self.row - 1,
                position,
            });
        }
        let fresh_tokens = paths.tokens().len().saturating_sub(seen * block_tokens);
        self.budget
            .hold(4 * fresh_tokens as u64)
            .map_err(|over| TraceError::memory(self.path, over))?;
        let common = shared.add(paths.tokens(), path, seen);
        let common = u32::try_from(common).unwrap_or(u32::MAX);
        let usable = common.min(row.prompt_tokens.saturating_sub(1));
        let lost = usable % self.builder.block_tokens();
        self.builder.rounding_lost(lost);
        Ok(())
    }
}

/// Chained hashes follow two parents only by collision.
fn as_collision(error: TraceError) -> TraceError {
    match error {
        TraceError::Path {
            path,
            row,
            reason: BuildError::TwoParents { position, .. },
        } => TraceError::Collision {
            path,
            row,
            position,
        },
        other => other,
    }
}

/// The facts of a row.
fn request(builder: &mut WorkloadBuilder, row: &Row<'_>) -> Result<Request, Fault> {
    let many = |column, name: &str| {
        Fault::new(
            column,
            format!("`{name}`, one more name"),
            format!("at most {} different names", u16::MAX),
        )
    };
    let kind = builder
        .try_kind(&row.kind)
        .ok_or_else(|| many(COLUMN.kind.name, &row.kind))?;
    let tool = match row.tool.as_deref() {
        Some(name) => Some(
            builder
                .try_tool(name)
                .ok_or_else(|| many(COLUMN.tool.name, name))?,
        ),
        None => None,
    };
    Ok(Request {
        request_id: row.request_id,
        arrival_us: row.arrival_us,
        session_id: row.session_id,
        parent_request: row.parent_request,
        step: row.step,
        kind,
        tool,
        tenant: row.tenant,
        prompt_tokens: row.prompt_tokens,
        output_tokens: row.output_tokens,
        path_start: 0,
        path_blocks: 0,
        prompt_blocks: prompt_blocks(row.prompt_tokens, builder.block_tokens()),
        seen_blocks: 0,
    })
}
