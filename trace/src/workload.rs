//! The loaded form of a trace: decoded once, ids made dense once, then shared by every run.

use std::collections::hash_map::Entry;

use policy_api::{BlockId, Hints, Request};
use rustc_hash::FxHashMap;

use crate::memory::{MemoryBudget, OverBudget};
use crate::meta::Provenance;

/// Stands for "no block" where a block id is expected: the parent of a first block.
pub const NO_BLOCK: BlockId = BlockId(u32::MAX);

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

    /// Names of the request kinds; index 0 is the empty name, for unknown.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }

    /// Names of the tools.
    pub fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Declared hints of every request; empty where the trace declares none at all.
    pub fn all_hints(&self) -> &[Hints] {
        &self.hints
    }

    /// Declared hints of request `index`; `None` where the trace declares none at all.
    pub fn hints(&self, index: usize) -> Option<&Hints> {
        self.hints.get(index)
    }

    /// Per request, shared prompt tokens lost below the size of a block (token traces only).
    pub fn rounding_lost_tokens(&self) -> Option<&[u32]> {
        self.rounding_lost_tokens.as_deref()
    }

    /// Where the trace comes from, as its file's metadata says.
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
    /// The workload needs more memory than it may have.
    #[error(transparent)]
    Memory(OverBudget),
    /// An earlier request was refused.
    #[error("an earlier path was refused, so this one cannot be compared with it")]
    Failed,
}

/// Builds a [`Workload`] request by request, in arrival order.
#[derive(Debug)]
pub struct WorkloadBuilder {
    workload: Workload,
    dense: FxHashMap<u64, BlockId>,
    sparse: Vec<u64>,
    /// Per block, the latest request with the block on its path.
    latest: Vec<usize>,
    kinds: FxHashMap<String, u16>,
    tools: FxHashMap<String, u16>,
    /// Whether a path was refused halfway.
    failed: bool,
}

impl WorkloadBuilder {
    /// Starts a workload of blocks of `block_tokens` tokens.
    ///
    /// # Panics
    /// If `block_tokens` is 0.
    pub fn new(block_tokens: u32) -> Self {
        Self::with_capacity(block_tokens, 0)
    }

    /// The same with room for so many blocks on all paths together.
    ///
    /// # Panics
    /// If `block_tokens` is 0.
    pub fn with_capacity(block_tokens: u32, blocks: u64) -> Self {
        assert!(block_tokens > 0, "a block holds at least one token");
        // The count may come from a damaged file, so it is a hint that must not exhaust the memory.
        let room = usize::try_from(blocks).unwrap_or(0).min(MAX_ROOM);
        Self {
            workload: Workload {
                block_tokens,
                requests: Vec::new(),
                arena: Vec::with_capacity(room),
                parents: Vec::new(),
                kinds: vec![String::new()],
                tools: Vec::new(),
                hints: Vec::new(),
                rounding_lost_tokens: None,
                provenance: Provenance::default(),
            },
            dense: FxHashMap::default(),
            sparse: Vec::new(),
            latest: Vec::new(),
            kinds: FxHashMap::from_iter([(String::new(), 0)]),
            tools: FxHashMap::default(),
            failed: false,
        }
    }

    /// Adds the next request. `path` holds the trace's ids of its blocks; of `request`, the fields `path_start`,
    /// `path_blocks` and `seen_blocks` are filled in here.
    ///
    /// # Errors
    /// [`BuildError`] where an id contradicts an earlier path. What was taken of that path is not undone, so the builder
    /// refuses all further requests.
    pub fn push(&mut self, request: Request, path: &[u64]) -> Result<(), BuildError> {
        if self.failed {
            return Err(BuildError::Failed);
        }
        let pushed = self.try_push(request, path).and_then(|()| {
            let mut budget = MemoryBudget::default();
            budget.hold(self.held_bytes()).map_err(BuildError::Memory)
        });
        self.failed = pushed.is_err();
        pushed
    }

    fn try_push(&mut self, mut request: Request, path: &[u64]) -> Result<(), BuildError> {
        request.path_start = self.workload.arena.len();
        request.path_blocks = u32::try_from(path.len()).map_err(|_| BuildError::TooManyBlocks)?;
        let mut parent = NO_BLOCK;
        let mut position = 0;
        request.seen_blocks = 0;
        while position < path.len() {
            let id = path[position];
            match self.dense.entry(id) {
                Entry::Occupied(known) => {
                    let block = *known.get();
                    self.check_parent(block, parent, position)?;
                    let followed = self.follow(block, path, position);
                    position += followed;
                    request.seen_blocks += u32::try_from(followed).unwrap_or(u32::MAX);
                }
                Entry::Vacant(place) => {
                    place.insert(next_block(&self.sparse)?);
                    self.append_fresh(id, parent);
                    position += 1;
                }
            }
            parent = *self.workload.arena.last().unwrap_or(&NO_BLOCK);
        }
        self.workload.requests.push(request);
        Ok(())
    }

    /// Appends the blocks from `position` on for as long as they are those of the latest path through `block`, which
    /// has the id `path[position]`; returns how many. Paths mostly repeat an earlier path, so comparing with that one
    /// spares a hash lookup a block.
    fn follow(&mut self, block: BlockId, path: &[u64], position: usize) -> usize {
        let request = self.workload.requests.len();
        let arena = &mut self.workload.arena;
        let followed = match self.workload.requests.get(self.latest[block.index()]) {
            // An id stands for its whole prefix, so the block is at the same position there.
            Some(earlier) => {
                let range = earlier.path_range();
                let from = range.start + position;
                let equal = arena[from..range.end]
                    .iter()
                    .zip(&path[position..])
                    .take_while(|&(&block, &id)| self.sparse[block.index()] == id)
                    .count();
                arena.extend_from_within(from..from + equal);
                equal
            }
            // The block is on this very path: never so where the parents agree.
            None => {
                arena.push(block);
                1
            }
        };
        let end = arena.len();
        for &touched in &arena[end - followed..] {
            self.latest[touched.index()] = request;
        }
        followed
    }

    /// Appends the block that [`next_block`] gave a name.
    fn append_fresh(&mut self, id: u64, parent: BlockId) {
        self.workload.arena.push(BlockId(self.sparse.len() as u32));
        self.sparse.push(id);
        self.latest.push(self.workload.requests.len());
        self.workload.parents.push(parent);
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
    ///
    /// # Panics
    /// From the 65,537th name on.
    pub fn kind(&mut self, name: &str) -> u16 {
        self.try_kind(name).expect(TOO_MANY_NAMES)
    }

    /// The index of a tool's name.
    ///
    /// # Panics
    /// From the 65,537th name on.
    pub fn tool(&mut self, name: &str) -> u16 {
        self.try_tool(name).expect(TOO_MANY_NAMES)
    }

    /// Finishes the workload.
    pub fn finish(mut self, provenance: Provenance) -> Workload {
        if !self.workload.hints.is_empty() {
            self.workload
                .hints
                .resize(self.workload.requests.len(), Hints::default());
        }
        self.workload.provenance = provenance;
        self.workload.arena.shrink_to_fit();
        self.workload
    }

    /// The index of a request kind's name, `None` where there are too many.
    pub(crate) fn try_kind(&mut self, name: &str) -> Option<u16> {
        intern(&mut self.workload.kinds, &mut self.kinds, name)
    }

    /// The index of a tool's name, `None` where there are too many.
    pub(crate) fn try_tool(&mut self, name: &str) -> Option<u16> {
        intern(&mut self.workload.tools, &mut self.tools, name)
    }

    /// Bytes of what was pushed, about.
    pub(crate) fn held_bytes(&self) -> u64 {
        let path_block = size_of::<BlockId>();
        // The id both ways, its parent, the latest request, and the room of a hash map that grows by doubling.
        let distinct_block = 9 * size_of::<u64>() + 2 * size_of::<BlockId>();
        let requests = self.workload.requests.len() * size_of::<Request>();
        let blocks = self.workload.arena.len() * path_block + self.sparse.len() * distinct_block;
        (requests + blocks) as u64
    }

    pub(crate) fn block_tokens(&self) -> u32 {
        self.workload.block_tokens
    }

    /// The request pushed last and its path.
    pub(crate) fn last(&self) -> Option<(&Request, &[BlockId])> {
        let request = self.workload.requests.last()?;
        Some((request, self.workload.path(request)))
    }

    fn check_parent(
        &self,
        block: BlockId,
        parent: BlockId,
        position: usize,
    ) -> Result<(), BuildError> {
        let expected = self.workload.parents[block.index()];
        if expected == parent {
            return Ok(());
        }
        Err(BuildError::TwoParents {
            id: self.sparse[block.index()],
            position,
            found: self.name(parent),
            expected: self.name(expected),
        })
    }

    fn name(&self, block: BlockId) -> String {
        match self.sparse.get(block.index()) {
            Some(id) => format!("block {id}"),
            None => "nothing (it began a path)".to_owned(),
        }
    }
}

const TOO_MANY_NAMES: &str = "a trace has at most 65,536 kinds and as many tools";

/// Most blocks to reserve room for on the word of a file's footer.
const MAX_ROOM: usize = 1 << 28;

/// The dense id of the next distinct block.
fn next_block(sparse: &[u64]) -> Result<BlockId, BuildError> {
    u32::try_from(sparse.len())
        .ok()
        .filter(|&block| block < NO_BLOCK.0 - 1)
        .map(BlockId)
        .ok_or(BuildError::TooManyBlocks)
}

/// The index of `name`, added at the end where it is new.
fn intern(names: &mut Vec<String>, known: &mut FxHashMap<String, u16>, name: &str) -> Option<u16> {
    if let Some(&index) = known.get(name) {
        return Some(index);
    }
    let index = u16::try_from(names.len()).ok()?;
    names.push(name.to_owned());
    known.insert(name.to_owned(), index);
    Some(index)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Paths in a small tree: a path is a walk from the root, and a block's id says where it is.
    fn paths() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let walk = prop::collection::vec(0..3_u64, 0..12);
        prop::collection::vec(walk, 0..40).prop_map(|walks| {
            let ids = |walk: Vec<u64>| {
                walk.iter()
                    .scan(1, |id, &turn| {
                        *id = *id * 3 + turn;
                        Some(*id)
                    })
                    .collect()
            };
            walks.into_iter().map(ids).collect()
        })
    }

    proptest! {
        #[test]
        fn dense_ids_are_those_of_a_map(paths in paths()) {
            let mut builder = WorkloadBuilder::new(1);
            for path in &paths {
                builder.push(Request::default(), path).unwrap();
            }
            let workload = builder.finish(Provenance::default());
            let mut dense: HashMap<u64, BlockId> = HashMap::new();
            for (path, request) in paths.iter().zip(workload.requests()) {
                let seen = path.iter().filter(|id| dense.contains_key(id)).count();
                prop_assert_eq!(request.seen_blocks as usize, seen);
                let mut parent = NO_BLOCK;
                let mut expected = Vec::new();
                for &id in path {
                    let fresh = BlockId(dense.len() as u32);
                    let block = *dense.entry(id).or_insert(fresh);
                    prop_assert_eq!(workload.parents()[block.index()], parent);
                    expected.push(block);
                    parent = block;
                }
                prop_assert_eq!(workload.path(request), expected);
            }
            prop_assert_eq!(workload.distinct_blocks() as usize, dense.len());
        }

        /// Whatever the ids, either every id keeps its parent or the push fails.
        #[test]
        fn an_id_under_two_parents_is_refused(
            paths in prop::collection::vec(prop::collection::vec(0..12_u64, 0..5), 0..6)
        ) {
            let mut builder = WorkloadBuilder::new(1);
            let mut parents: HashMap<u64, Option<u64>> = HashMap::new();
            for path in &paths {
                let before = std::iter::once(None).chain(path.iter().copied().map(Some));
                let fits = path.iter().zip(before).all(|(&id, before)| {
                    *parents.entry(id).or_insert(before) == before
                });
                let pushed = builder.push(Request::default(), path);
                prop_assert_eq!(pushed.is_ok(), fits, "{:?}", path);
                if !fits {
                    break;
                }
            }
        }
    }

    #[test]
    fn too_many_names_are_no_index() {
        let mut builder = WorkloadBuilder::new(1);
        for index in 0..=u16::MAX {
            assert_eq!(builder.try_tool(&index.to_string()), Some(index));
        }
        assert_eq!(builder.try_tool("one more"), None);
        assert_eq!(builder.try_tool("7"), Some(7));
    }
}
