//! Admit what was asked for before.
//!
//! Every request remembers its whole path, admitted or not, in a list of so many blocks, of which the least recently seen are forgotten
//! first. Within a path the root is the more recent, as in the cache:
//!
//! ```text
//!   request   remembered before (memory=4)     admitted
//!   a b       -                                -
//!   a b c     a b                              a b
//!   a b c     a b c                            a b c
//!   x y       a b c                            -                    c is forgotten for x and y
//! ```

use std::collections::VecDeque;

use policy_api::{AdmissionPolicy, BlockId, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};
use params::{Domain, Param};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "second-occurrence",
    summary: "admit only what an earlier request asked for too",
    source: "vLLM offload filter (threshold 2, 64,000 hashes); the course",
    idea: "Most of what is asked for once is never asked for again: admit the longest leading part of the path that is resident or \
           remembered.",
    cost: "two stores per block of the path",
    avoid_when: "nearly everything is reused at once, as by the next turn of a conversation: every block is then computed twice before \
                 it can be hit",
    params: &[Param {
        name: "memory",
        default: "64000",
        domain: Domain::CountOrUnbounded(0, 1 << 32),
        help: "blocks that are remembered, the least recently seen are forgotten first",
    }],
    track: Track::Online,
    build: |_, params| Box::new(SecondOccurrence::new(params.count("memory"))),
};

struct SecondOccurrence {
    /// Per block the request that remembered it last, counted from 1; 0 if it is not remembered.
    remembered_by: Vec<u32>,
    memory: Option<Memory>,
    requests: u32,
}

impl SecondOccurrence {
    fn new(memory_blocks: Option<u64>) -> Self {
        Self {
            remembered_by: Vec::new(),
            memory: memory_blocks.map(Memory::new),
            requests: 0,
        }
    }

    fn remember(&mut self, path: &[BlockId]) {
        self.requests += 1;
        for &block in path.iter().rev() {
            let by = slot(&mut self.remembered_by, block);
            let known = std::mem::replace(by, self.requests) != 0;
            if let Some(memory) = &mut self.memory {
                memory.push(block, self.requests, known);
            }
        }
        if let Some(memory) = &mut self.memory {
            memory.forget(&mut self.remembered_by);
        }
    }
}

impl AdmissionPolicy for SecondOccurrence {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        let fresh = &request.path[request.held_blocks as usize..];
        let known = fresh
            .iter()
            .take_while(|block| {
                self.remembered_by
                    .get(block.index())
                    .is_some_and(|by| *by != 0)
            })
            .count();
        self.remember(request.path);
        request.held_blocks + known as u32
    }
}

/// The order in which blocks are forgotten. An entry is stale if its block was remembered again since.
struct Memory {
    capacity_blocks: u64,
    live_blocks: u64,
    /// Block and request, the oldest first.
    order: VecDeque<(BlockId, u32)>,
}

impl Memory {
    /// Stale entries are swept out when they outnumber live ones by this factor (and this number).
    const STALE_FACTOR: u64 = 4;
    const STALE_FLOOR: u64 = 1024;

    fn new(capacity_blocks: u64) -> Self {
        Self {
            capacity_blocks,
            live_blocks: 0,
            order: VecDeque::new(),
        }
    }

    fn push(&mut self, block: BlockId, request: u32, known: bool) {
        self.live_blocks += u64::from(!known);
        self.order.push_back((block, request));
    }

    fn forget(&mut self, remembered_by: &mut [u32]) {
        while self.live_blocks > self.capacity_blocks {
            let Some((block, request)) = self.order.pop_front() else {
                break;
            };
            let by = &mut remembered_by[block.index()];
            if *by == request {
                *by = 0;
                self.live_blocks -= 1;
            }
        }
        if self.order.len() as u64 > Self::STALE_FLOOR + Self::STALE_FACTOR * self.live_blocks {
            self.order
                .retain(|(block, request)| remembered_by[block.index()] == *request);
        }
    }
}

fn slot(table: &mut Vec<u32>, block: BlockId) -> &mut u32 {
    let index = block.index();
    if index >= table.len() {
        table.resize(index + 1, 0);
    }
    &mut table[index]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{admitted, ask, asks};

    #[test]
    fn the_second_time_a_block_is_seen_it_comes_in() {
        let paths = asks(&["abc", "abd", "abd", "x", "abde"]);
        assert_eq!(admitted("second-occurrence", 9, &paths), [0, 2, 3, 0, 3]);
    }

    #[test]
    fn what_is_resident_stays_admitted_though_it_is_forgotten() {
        let paths = asks(&["a", "a", "x", "y", "abc"]);
        assert_eq!(
            admitted("second-occurrence(memory=1)", 9, &paths),
            [0, 1, 0, 0, 1]
        );
    }

    #[test]
    fn the_root_is_forgotten_last() {
        // Two are remembered: of "abc" the blocks a and b.
        let paths = asks(&["abc", "abc"]);
        assert_eq!(admitted("second-occurrence(memory=2)", 9, &paths), [0, 2]);
        // Of "xy" both, of "abc" none.
        let paths = asks(&["abc", "xy", "abc"]);
        assert_eq!(
            admitted("second-occurrence(memory=2)", 9, &paths),
            [0, 0, 0]
        );
    }

    #[test]
    fn a_memory_of_nothing_admits_nothing() {
        let paths = asks(&["ab", "ab", "ab"]);
        assert_eq!(
            admitted("second-occurrence(memory=0)", 9, &paths),
            [0, 0, 0]
        );
        assert_eq!(
            admitted("second-occurrence(memory=unbounded)", 9, &paths),
            [0, 2, 2]
        );
    }

    /// A list that is searched from end to end, the most recent first.
    struct Naive {
        capacity: usize,
        blocks: Vec<BlockId>,
    }

    impl Naive {
        fn known(&mut self, path: &[BlockId]) -> u32 {
            let known = path
                .iter()
                .take_while(|block| self.blocks.contains(block))
                .count();
            self.blocks.retain(|block| !path.contains(block));
            self.blocks.splice(0..0, path.iter().copied());
            self.blocks.truncate(self.capacity);
            known as u32
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(
            paths in prop::collection::vec("[abc]{0,5}", 1..60),
            memory in 0usize..12,
        ) {
            let trace = crate::testing::Trace::new(&paths.iter().map(ask).collect::<Vec<_>>());
            let mut policy = SecondOccurrence::new(Some(memory as u64));
            let mut naive = Naive { capacity: memory, blocks: Vec::new() };
            for index in 0..trace.requests.len() {
                let path = trace.path(index);
                let view = crate::testing::view(path);
                prop_assert_eq!(policy.admit(&view, None), naive.known(path));
            }
        }
    }
}
