//! W-TinyLFU: a small window for newcomers, and a contest at the door of the main cache.
//!
//! ```text
//!   newcomer ---> window, a hundredth, by last use ---> contest ---> probation, a fifth ---> used ---> protected, four fifths
//!                                                         |                    ^                           |
//!                                                         +- the loser of its  +------- what is too much --+
//!                                                            head and the main cache's next victim is evicted
//! ```
//!
//! The contest is held between first blocks, whose counts are those of their whole nodes; a sketch counts every block of a path once
//! per request. Sizes are in blocks. A node with children cannot be evicted, so with its next use it leaves the window without a
//! contest.

use std::cmp::Reverse;

use policy_api::{
    BlockId, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim, WithdrawReason,
};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::node_table::NodeTable;
use crate::parts::sketch::Sketch;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "w-tinylfu",
    summary: "a window of 1%, then a contest of counts against the main cache's next victim; evicts the loser",
    source: "Einziger, Friedman and Manes, TinyLFU: a highly efficient cache admission policy, ACM ToS 2017; Caffeine",
    idea: "Recency rules in a small window; whoever wants to stay longer must have been asked for more often than what \
           would be evicted for it.",
    cost: "O(log leaves) per offer, amortised; one visit to every node and one count per block of the path",
    avoid_when: "most reuse is soon after the first use, as by the next turn of a conversation",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(WTinyLfu::new(context.cache.capacity_blocks()))
    }),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum LfuSegment {
    Window,
    Probation,
    Protected,
}

#[derive(Clone, Copy)]
struct LfuState {
    segment: LfuSegment,
    /// The request at which it entered its segment.
    entered: Tick,
}

/// Last use or entry, whichever is later; then the deeper first.
type Place = (Tick, Reverse<u32>);

/// What an evictable leaf is ranked and contested by.
#[derive(Clone, Copy)]
struct Contender {
    last_used: Tick,
    depth: Reverse<u32>,
    first_block: BlockId,
    blocks: u32,
}

struct WTinyLfu {
    window_capacity: u64,
    main_capacity: u64,
    protected_capacity: u64,
    window_blocks: u64,
    main_blocks: u64,
    protected_blocks: u64,
    nodes: NodeTable<LfuState>,
    leaves: NodeTable<Contender>,
    window: Ranked<Place>,
    probation: Ranked<Place>,
    protected: Ranked<Place>,
    sketch: Sketch,
    now: Tick,
}

impl WTinyLfu {
    fn new(capacity_blocks: u64) -> Self {
        let window_capacity = (capacity_blocks / 100).max(1);
        let main_capacity = capacity_blocks.saturating_sub(window_capacity);
        Self {
            window_capacity,
            main_capacity,
            protected_capacity: main_capacity - main_capacity / 5,
            window_blocks: 0,
            main_blocks: 0,
            protected_blocks: 0,
            nodes: NodeTable::new(),
            leaves: NodeTable::new(),
            window: Ranked::new(),
            probation: Ranked::new(),
            protected: Ranked::new(),
            sketch: Sketch::new(capacity_blocks),
            now: Tick::default(),
        }
    }

    fn ranked(&mut self, segment: LfuSegment) -> &mut Ranked<Place> {
        match segment {
            LfuSegment::Window => &mut self.window,
            LfuSegment::Probation => &mut self.probation,
            LfuSegment::Protected => &mut self.protected,
        }
    }

    fn put(&mut self, id: NodeId, state: LfuState, leaf: Contender) {
        let place = (leaf.last_used.max(state.entered), leaf.depth);
        self.ranked(state.segment).put(id, place);
    }

    /// Adds blocks to a segment, or takes them off.
    fn count(&mut self, segment: LfuSegment, blocks: u32, add: bool) {
        let change = |sum: &mut u64| {
            *sum = if add {
                *sum + u64::from(blocks)
            } else {
                *sum - u64::from(blocks)
            };
        };
        match segment {
            LfuSegment::Window => change(&mut self.window_blocks),
            LfuSegment::Probation => change(&mut self.main_blocks),
            LfuSegment::Protected => {
                change(&mut self.main_blocks);
                change(&mut self.protected_blocks);
            }
        }
    }

    fn move_node(&mut self, id: NodeId, blocks: u32, to: LfuSegment) {
        let Some(&LfuState { segment: from, .. }) = self.nodes.get(id) else {
            return;
        };
        self.count(from, blocks, false);
        self.count(to, blocks, true);
        self.ranked(from).remove(id);
        let state = LfuState {
            segment: to,
            entered: self.now,
        };
        self.nodes.put(id, state);
        if let Some(&leaf) = self.leaves.get(id) {
            self.put(id, state, leaf);
        }
    }

    /// While the main cache has room, what the window has no room for enters without a contest.
    fn spill(&mut self) {
        while self.window_blocks > self.window_capacity
            && let Some((id, leaf)) = first_of(&mut self.window, &self.leaves)
            && self.main_blocks + u64::from(leaf.blocks) <= self.main_capacity
        {
            self.move_node(id, leaf.blocks, LfuSegment::Probation);
        }
        while self.protected_blocks > self.protected_capacity
            && let Some((id, leaf)) = first_of(&mut self.protected, &self.leaves)
        {
            self.move_node(id, leaf.blocks, LfuSegment::Probation);
        }
    }

    fn contender(&mut self) -> Option<(NodeId, Contender)> {
        if self.window_blocks > self.window_capacity {
            first_of(&mut self.window, &self.leaves)
        } else {
            None
        }
    }

    fn main_victim(&mut self) -> Option<(NodeId, Contender)> {
        first_of(&mut self.probation, &self.leaves)
            .or_else(|| first_of(&mut self.protected, &self.leaves))
    }
}

fn first_of(
    ranked: &mut Ranked<Place>,
    leaves: &NodeTable<Contender>,
) -> Option<(NodeId, Contender)> {
    let id = ranked.first()?;
    Some((id, *leaves.get(id)?))
}

impl EvictionPolicy for WTinyLfu {
    fn offer(&mut self, leaf: &Candidate) {
        let facts = Contender {
            last_used: leaf.last_used,
            depth: Reverse(leaf.depth_blocks),
            first_block: leaf.first_block,
            blocks: leaf.blocks,
        };
        self.leaves.put(leaf.id, facts);
        if self.nodes.get(leaf.id).is_none() {
            self.count(LfuSegment::Window, leaf.blocks, true);
        }
        let state = *self.nodes.entry(leaf.id, || LfuState {
            segment: LfuSegment::Window,
            entered: leaf.created,
        });
        self.put(leaf.id, state, facts);
        self.spill();
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
        if let Some(&state) = self.nodes.get(id) {
            self.ranked(state.segment).remove(id);
        }
    }

    fn victim(&mut self) -> Option<Victim> {
        let loser = match (self.contender(), self.main_victim()) {
            (Some((id, new)), Some((victim, old))) => {
                let wins = self.sketch.count(new.first_block) > self.sketch.count(old.first_block);
                Some(if wins { victim } else { id })
            }
            (Some((id, _)), None) | (None, Some((id, _))) => Some(id),
            (None, None) => self.window.first(),
        };
        loser.map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        let Some(&LfuState { segment, .. }) = self.nodes.get(evicted.id) else {
            return;
        };
        self.count(segment, evicted.blocks, false);
        self.withdraw(evicted.id, WithdrawReason::Used);
        if segment != LfuSegment::Window
            && let Some((winner, leaf)) = self.contender()
        {
            self.move_node(winner, leaf.blocks, LfuSegment::Probation);
        }
        if whole {
            self.nodes.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        if let Some(LfuState { segment, .. }) = self.nodes.remove(head) {
            self.count(segment, head_blocks, false);
        }
        if let Some(&LfuState { segment, .. }) = self.nodes.get(tail) {
            self.count(segment, head_blocks, true);
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.now = request.now;
        self.sketch.add(request.path);
        for (above, node) in nodes.iter().enumerate() {
            let inner = above + 1 < nodes.len();
            match self.nodes.get(node.id).map(|state| state.segment) {
                Some(LfuSegment::Probation) => {
                    self.move_node(node.id, node.blocks, LfuSegment::Protected);
                }
                Some(LfuSegment::Window) if inner => {
                    self.move_node(node.id, node.blocks, LfuSegment::Protected);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{asks, victims};

    #[test]
    fn a_newcomer_must_be_asked_for_more_often() {
        // A window of one, a main cache of a and b. c and d lose to a (2); d, asked for three times in all, wins.
        let paths = asks(&["a", "a", "b", "c", "d", "e", "d", "d", "f"]);
        assert_eq!(
            victims("w-tinylfu", 3, &paths)[4..],
            ["c", "d", "e", "", "a"]
        );
    }

    #[test]
    fn a_use_in_the_main_cache_protects() {
        // a and b are in the main cache; a is used there and is protected, so b is the victim that c must beat.
        let paths = asks(&["a", "b", "c", "a", "c", "d"]);
        assert_eq!(victims("w-tinylfu", 3, &paths)[5], "b");
    }

    #[test]
    fn a_scan_goes_through_the_window() {
        let mut paths = vec!["a", "b", "a", "b", "a", "b"];
        paths.extend(["c", "d", "e", "f", "g", "h"]);
        let victims = victims("w-tinylfu", 3, &asks(&paths));
        assert_eq!(victims[7..], ["c", "d", "e", "f", "g"]);
    }
}
