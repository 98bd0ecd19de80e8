//! The loaded form of a trace: decoded once, ids made dense once, then shared by every run.

use policy_api::{BlockId, Hints, Request};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Stands for "no block" where a block id is expected: the parent of a first block.
pub const NO_BLOCK: BlockId = BlockId::MAX;

/// What the file's metadata says of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// `trace.name`
    pub name: Option<String>,
    /// `trace.source`
    pub source: Option<String>,
    /// `trace.license`
    pub license: Option<String>,
    /// `trace.generator`
    pub generator: Option<String>,
    /// `trace.seed`
    pub seed: Option<String>,
}

/// A trace in memory: per request its facts, and all paths as dense ids in one arena.
#[derive(Clone, Debug)]
pub struct Workload {
    block_tokens: u32,
    requests: Vec<Request>,
    arena: Vec<BlockId>,
    parents: Vec<BlockId>,
    kinds: Vec<String>,
    tools: Vec<String>,
    hints: Vec<Hints>,
    rounding_lost_tokens: Option<Vec<u32>>,
    provenance: Provenance,
}

impl Workload {
    /// Tokens of a block.
    pub fn block_tokens(&self) -> u32 {
        self.block_tokens
    }

    /// The requests, in arrival order.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// All paths, one after another; a request's part is [`Request::path_range`].
    pub fn arena(&self) -> &[BlockId] {
        &self.arena
    }

    /// The path of a request.
    pub fn path(&self, request: &Request) -> &[BlockId] {
        &self.arena[request.path_range()]
    }

    /// Distinct blocks of the trace.
    pub fn distinct_blocks(&self) -> u32 {
        u32::try_from(self.parents.len()).unwrap_or(u32::MAX)
    }

    /// The parent of every dense block id, [`NO_BLOCK`] for a first block.
    pub fn parents(&self) -> &[BlockId] {
        &self.parents
    }

    /// Blocks that can count as a hit of this request at most: one token is always computed.
    pub fn usable_blocks(&self, request: &Request) -> u32 {
        request.prompt_tokens.saturating_sub(1) / self.block_tokens
    }

    /// Names of the request kinds; index 0 is the empty name of "not said".
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Names of the tools.
    pub fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Declared hints of request `index`; `None` where the trace declares none at all.
    pub fn hints(&self, index: usize) -> Option<&Hints> {
        self.hints.get(index)
    }

    /// Per request, shared prompt tokens lost below the size of a block (token traces only).
    pub fn rounding_lost_tokens(&self) -> Option<&[u32]> {
        self.rounding_lost_tokens.as_deref()
    }

    /// What the file's metadata says of the trace.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }
}

/// Why a request does not fit into the workload built so far.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// One block id under two parents: ids must imply their whole prefix.
    #[error(
        "block id {id} at position {position} follows {found}, but followed {expected} before: \
         a block id must stand for its whole prefix (chain the ids when importing)"
    )]
    TwoParents {
        /// The trace's block id.
        id: u64,
        /// Position in the path.
        position: usize,
        /// What it follows here.
        found: String,
        /// What it followed where it was first seen.
        expected: String,
    },
    /// More distinct blocks than a dense id can name.
    #[error("more than {} distinct blocks", u32::MAX - 2)]
    TooManyBlocks,
}

/// Builds a [`Workload`] request by request, in arrival order.
#[derive(Debug)]
pub struct WorkloadBuilder {
    workload: Workload,
    dense: FxHashMap<u64, BlockId>,
    sparse: Vec<u64>,
}

impl WorkloadBuilder {
    /// Starts a workload of blocks of `block_tokens` tokens.
    pub fn new(block_tokens: u32) -> Self {
        assert!(block_tokens > 0, "a block holds at least one token");
        Self {
            workload: Workload {
                block_tokens,
                requests: Vec::new(),
                arena: Vec::new(),
                parents: Vec::new(),
                kinds: vec![String::new()],
                tools: Vec::new(),
                hints: Vec::new(),
                rounding_lost_tokens: None,
                provenance: Provenance::default(),
            },
            dense: FxHashMap::default(),
            sparse: Vec::new(),
        }
    }

    /// Adds the next request. `path` holds the trace's ids of its blocks; of `request`, the fields `path_start`,
    /// `path_blocks` and `seen_blocks` are filled in here.
    ///
    /// # Errors
    /// [`BuildError`] where an id contradicts an earlier path; the workload is then unusable.
    pub fn push(&mut self, mut request: Request, path: &[u64]) -> Result<(), BuildError> {
        request.path_start = self.workload.arena.len();
        request.path_blocks = u32::try_from(path.len()).map_err(|_| BuildError::TooManyBlocks)?;
        request.seen_blocks = 0;
        let mut parent = NO_BLOCK;
        for (position, &id) in path.iter().enumerate() {
            let fresh = BlockId::try_from(self.sparse.len()).unwrap_or(NO_BLOCK);
            let block = match self.dense.entry(id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(_) if fresh >= NO_BLOCK - 1 => return Err(BuildError::TooManyBlocks),
                Entry::Vacant(slot) => *slot.insert(fresh),
            };
            if block == fresh {
                self.sparse.push(id);
                self.workload.parents.push(parent);
            } else {
                self.check_parent(block, parent, position)?;
                request.seen_blocks += 1;
            }
            self.workload.arena.push(block);
            parent = block;
        }
        self.workload.requests.push(request);
        Ok(())
    }

    /// Records the hints of the request pushed last. Requests without any get the default.
    pub fn hint(&mut self, hints: Hints) {
        self.workload.hints.resize(
            self.workload.requests.len().saturating_sub(1),
            Hints::default(),
        );
        self.workload.hints.push(hints);
    }

    /// Records the tokens that the request pushed last lost to rounding.
    pub fn rounding_lost(&mut self, tokens: u32) {
        self.workload
            .rounding_lost_tokens
            .get_or_insert_default()
            .push(tokens);
    }

    /// The index of a request kind's name.
    pub fn kind(&mut self, name: &str) -> u16 {
        intern(&mut self.workload.kinds, name)
    }

    /// The index of a tool's name.
    pub fn tool(&mut self, name: &str) -> u16 {
        intern(&mut self.workload.tools, name)
    }

    /// Finishes the workload.
    pub fn finish(mut self, provenance: Provenance) -> Workload {
        if !self.workload.hints.is_empty() {
            self.workload
                .hints
                .resize(self.workload.requests.len(), Hints::default());
        }
        self.workload.provenance = provenance;
        self.workload
    }

    fn check_parent(
        &self,
        block: BlockId,
        parent: BlockId,
        position: usize,
    ) -> Result<(), BuildError> {
        let expected = self.workload.parents[block as usize];
        if expected == parent {
            return Ok(());
        }
        Err(BuildError::TwoParents {
            id: self.sparse[block as usize],
            position,
            found: self.name(parent),
            expected: self.name(expected),
        })
    }

    fn name(&self, block: BlockId) -> String {
        match self.sparse.get(block as usize) {
            Some(id) => format!("block {id}"),
            None => "nothing (it began a path)".to_owned(),
        }
    }
}

/// The index of `name`, added at the end where it is new. Traces name a handful of kinds and tools.
fn intern(names: &mut Vec<String>, name: &str) -> u16 {
    let index = names
        .iter()
        .position(|known| known == name)
        .unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
    u16::try_from(index).expect("a trace names fewer than 65,536 kinds and tools")
}
