//! From tokens to block ids, and what prompts share below the size of a block.

use std::cmp::Ordering;

use policy_api::BlockId;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::workload::NO_BLOCK;

/// The id "before" a first block, which starts every chain.
const ROOT_ID: u64 = 0;

/// Turns the tokens of one request at a time into the chained ids of its path: `id_k = xxh3_64(id_{k-1} || tokens of
/// block k)`, ids as 8 and tokens as 4 little-endian bytes.
pub(crate) struct TokenPaths {
    block_tokens: usize,
    hash: fn(&[u8]) -> u64,
    bytes: Vec<u8>,
    tokens: Vec<u32>,
    ids: Vec<u64>,
}

impl TokenPaths {
    pub(crate) fn new(block_tokens: u32) -> Self {
        Self::with_hash(block_tokens, xxh3_64)
    }

    fn with_hash(block_tokens: u32, hash: fn(&[u8]) -> u64) -> Self {
        Self {
            block_tokens: block_tokens as usize,
            hash,
            bytes: Vec::new(),
            tokens: Vec::new(),
            ids: Vec::new(),
        }
    }

    /// Takes the next request: the tokens that will have KV are the prompt and, where known, the output but its last.
    pub(crate) fn set(&mut self, prompt: &[u32], output: Option<&[u32]>) {
        self.tokens.clear();
        self.tokens.extend_from_slice(prompt);
        if let Some((_, kept)) = output.and_then(<[u32]>::split_last) {
            self.tokens.extend_from_slice(kept);
        }
        self.ids.clear();
        let mut id = ROOT_ID;
        for block in self.tokens.chunks_exact(self.block_tokens) {
            self.bytes.clear();
            self.bytes.extend_from_slice(&id.to_le_bytes());
            self.bytes
                .extend(block.iter().flat_map(|token| token.to_le_bytes()));
            id = (self.hash)(&self.bytes);
            self.ids.push(id);
        }
    }

    /// The ids of the path.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The tokens of the path, its incomplete last block included.
    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}

/// The tokens of all paths so far as a tree of blocks, to find how far a new path follows an earlier one, to the
/// token.
pub(crate) struct SharedTokens {
    block_tokens: usize,
    /// Tokens of every distinct block, by dense id.
    blocks: Vec<u32>,
    /// Tokens of the incomplete blocks at the ends of paths.
    tails: Vec<Box<[u32]>>,
    /// The first child of every block (of the root: entry 0). Few blocks have more.
    first_child: Vec<Option<Piece>>,
    /// All children of those that have more than one, sorted by their tokens.
    children: FxHashMap<BlockId, Vec<Piece>>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Block(BlockId),
    Tail(u32),
}

impl SharedTokens {
    pub(crate) fn new(block_tokens: u32) -> Self {
        Self {
            block_tokens: block_tokens as usize,
            blocks: Vec::new(),
            tails: Vec::new(),
            first_child: vec![None],
            children: FxHashMap::default(),
        }
    }

    /// Adds a path whose first `seen` blocks were on earlier paths; returns the length in tokens of the longest
    /// prefix it has in common with any of them.
    pub(crate) fn add(&mut self, tokens: &[u32], path: &[BlockId], seen: usize) -> usize {
        let b = self.block_tokens;
        let parent_of = |position: usize| match position {
            0 => NO_BLOCK,
            _ => path[position - 1],
        };
        let rest = &tokens[seen * b..tokens.len().min((seen + 1) * b)];
        let (place, within) = self.nearest(parent_of(seen), rest);
        let mut place = Some(place);
        for position in seen..path.len() {
            self.blocks
                .extend_from_slice(&tokens[position * b..(position + 1) * b]);
            self.first_child.push(None);
            // Below the first new block everything is new, so there is nothing to be sorted among.
            self.insert(
                parent_of(position),
                place.take().unwrap_or(0),
                Piece::Block(path[position]),
            );
        }
        let tail = &tokens[path.len() * b..];
        let known = seen == path.len() && within == tail.len();
        if !known && let Ok(index) = u32::try_from(self.tails.len()) {
            self.tails.push(tail.into());
            self.insert(
                parent_of(path.len()),
                place.unwrap_or(0),
                Piece::Tail(index),
            );
        }
        seen * b + within
    }

    /// The first of the path's `seen` blocks whose tokens are not those of the earlier block with its id.
    pub(crate) fn collision(&self, tokens: &[u32], path: &[BlockId], seen: usize) -> Option<usize> {
        let blocks = tokens.chunks_exact(self.block_tokens).zip(path);
        blocks
            .take(seen)
            .position(|(block, &id)| block != self.piece(Piece::Block(id)))
    }

    /// Where `tokens` belongs among the children of `parent`, and how many leading tokens a neighbour there shares:
    /// in sorted order no other child shares more.
    fn nearest(&self, parent: BlockId, tokens: &[u32]) -> (usize, usize) {
        let children = self.children_of(parent);
        let place = children
            .binary_search_by(|&child| match self.piece(child) < tokens {
                true => Ordering::Less,
                false => Ordering::Greater,
            })
            .unwrap_or_else(|place| place);
        let shared = children[place.saturating_sub(1)..children.len().min(place + 1)]
            .iter()
            .map(|&child| common_prefix(self.piece(child), tokens))
            .max();
        (place, shared.unwrap_or(0))
    }

    fn children_of(&self, parent: BlockId) -> &[Piece] {
        match (self.children.get(&parent), &self.first_child[slot(parent)]) {
            (Some(children), _) => children,
            (None, Some(only)) => std::slice::from_ref(only),
            (None, None) => &[],
        }
    }

    fn insert(&mut self, parent: BlockId, place: usize, piece: Piece) {
        match &mut self.first_child[slot(parent)] {
            first @ None => *first = Some(piece),
            Some(first) => self
                .children
                .entry(parent)
                .or_insert_with(|| vec![*first])
                .insert(place, piece),
        }
    }

    fn piece(&self, piece: Piece) -> &[u32] {
        match piece {
            Piece::Block(id) => {
                let start = id.index() * self.block_tokens;
                &self.blocks[start..start + self.block_tokens]
            }
            Piece::Tail(index) => &self.tails[index as usize],
        }
    }
}

/// Where a block's first child is kept; the root's is entry 0.
fn slot(parent: BlockId) -> usize {
    parent.0.wrapping_add(1) as usize
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::WorkloadBuilder;
    use policy_api::Request;

    /// The common prefix of each path with the earlier ones, by comparing with all of them.
    fn slowly(paths: &[Vec<u32>]) -> Vec<usize> {
        (0..paths.len())
            .map(|at| {
                let earlier = paths[..at].iter();
                let shared = earlier.map(|earlier| common_prefix(earlier, &paths[at]));
                shared.max().unwrap_or(0)
            })
            .collect()
    }

    fn quickly(paths: &[Vec<u32>], block_tokens: u32) -> Vec<usize> {
        let mut ids = TokenPaths::new(block_tokens);
        let mut shared = SharedTokens::new(block_tokens);
        let mut builder = WorkloadBuilder::new(block_tokens);
        paths
            .iter()
            .map(|tokens| {
                ids.set(tokens, None);
                builder.push(Request::default(), ids.ids()).unwrap();
                let (request, path) = builder.last().unwrap();
                let seen = request.seen_blocks as usize;
                assert_eq!(shared.collision(ids.tokens(), path, seen), None);
                shared.add(ids.tokens(), path, seen)
            })
            .collect()
    }

    proptest! {
        #[test]
        fn common_prefixes_are_exact_to_the_token(
            paths in prop::collection::vec(prop::collection::vec(0..3_u32, 0..14), 0..30),
            block_tokens in 1..6_u32,
        ) {
            prop_assert_eq!(quickly(&paths, block_tokens), slowly(&paths));
        }
    }

    #[test]
    fn an_id_is_the_hash_of_its_parent_and_its_tokens() {
        let mut paths = TokenPaths::new(2);
        paths.set(&[1, 2, 3, 4, 5], Some(&[6, 7]));
        let first = xxh3_64(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
        let mut bytes = first.to_le_bytes().to_vec();
        bytes.extend([3, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(paths.ids()[..2], [first, xxh3_64(&bytes)]);
        // The output's last token is not fed back: 5 and 6 are, 7 is not.
        assert_eq!(paths.ids().len(), 3);
        assert_eq!(paths.tokens(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_collision_is_found_by_its_tokens() {
        let mut paths = TokenPaths::with_hash(2, |bytes| bytes.len() as u64);
        let mut shared = SharedTokens::new(2);
        paths.set(&[1, 2], None);
        shared.add(paths.tokens(), &[BlockId(0)], 0);
        assert_eq!(shared.collision(paths.tokens(), &[BlockId(0)], 1), None);
        paths.set(&[1, 3], None);
        assert_eq!(paths.ids(), [16]);
        assert_eq!(shared.collision(paths.tokens(), &[BlockId(0)], 1), Some(0));
    }
}
