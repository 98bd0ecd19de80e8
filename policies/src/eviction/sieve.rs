//! SIEVE: lazy promotion, quick demotion.
//!
//! Nodes stay in the order in which they were admitted. Unlike in CLOCK a node that is passed keeps its place, so newcomers are
//! looked at soon and old favourites rarely. `*` is a mark; the hand `^` stands before the next node that it looks at:
//!
//! ```text
//!   a  b* c* d     evict:  the hand clears b and c, and evicts d      a  b  c
//!      ^                                                              ^   past the newest it begins again
//! ```
//!
//! A node that has children keeps its place and its mark and is looked at when it becomes a leaf.

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, Victim, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::newcomers_last::NewcomersLast;
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "sieve",
    summary: "a hand passes from old to new, clears marks, and evicts the first leaf without one",
    source: "Zhang et al., SIEVE is simpler than LRU, NSDI 2024",
    idea: "Used nodes stay in place and newcomers are sifted quickly: most of them are never used again.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "the working set moves in waves: favourites outlive their wave",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(NewcomersLast::new(Sieve::new()))),
};

/// The turn of the hand at which a place comes, and the place: the order in which the hand meets nodes.
type Meeting = (u64, u64);

#[derive(Clone, Copy)]
struct SievePlace {
    place: u64,
    marked: bool,
    uses: u32,
}

struct Sieve {
    nodes: NodeTable<SievePlace>,
    marked: Ranked<Meeting>,
    unmarked: Ranked<Meeting>,
    places: u64,
    /// Where the hand is: the first place it has not passed in its turn.
    hand: Meeting,
}

impl Sieve {
    fn new() -> Self {
        Self {
            nodes: NodeTable::new(),
            marked: Ranked::new(),
            unmarked: Ranked::new(),
            places: 0,
            hand: (0, 0),
        }
    }

    fn meeting(&self, place: u64) -> Meeting {
        let (turn, hand) = self.hand;
        (turn + u64::from(place < hand), place)
    }

    fn put(&mut self, id: NodeId, state: SievePlace) {
        self.take_off(id);
        let meeting = self.meeting(state.place);
        if state.marked {
            self.marked.put(id, meeting);
        } else {
            self.unmarked.put(id, meeting);
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.marked.remove(id);
        self.unmarked.remove(id);
    }

    /// Moves the hand to a victim: the marks of those it meets before are cleared, all of them if the victim had one.
    fn move_hand(&mut self, victim: SievePlace, whole: bool) {
        let (turn, place) = self.meeting(victim.place);
        let before = self.passed((turn, place), victim.marked);
        let turn = turn + u64::from(victim.marked);
        self.hand = (turn, place + u64::from(whole));
        for id in before {
            if let Some(state) = self.nodes.get_mut(id) {
                state.marked = false;
                let state = *state;
                self.put(id, state);
            }
        }
        if whole && self.next_meeting().is_none_or(|(next, _)| next > turn) {
            // The newest went: the hand is back at the oldest before anything newer comes in.
            self.hand = (turn + 1, 0);
        }
    }

    fn next_meeting(&mut self) -> Option<Meeting> {
        let (marked, unmarked) = (self.marked.first_entry(), self.unmarked.first_entry());
        marked
            .into_iter()
            .chain(unmarked)
            .map(|(meeting, _)| meeting)
            .min()
    }

    fn passed(&mut self, victim: Meeting, all: bool) -> Vec<NodeId> {
        let mut passed = Vec::new();
        while let Some((meeting, id)) = self.marked.first_entry()
            && (all || meeting < victim)
        {
            self.marked.remove(id);
            passed.push(id);
        }
        passed
    }
}

impl EvictionPolicy for Sieve {
    fn offer(&mut self, leaf: &Candidate) {
        let places = &mut self.places;
        let state = self.nodes.entry(leaf.id, || {
            *places += 1;
            SievePlace {
                place: *places,
                marked: false,
                uses: leaf.uses,
            }
        });
        state.marked |= leaf.uses > state.uses;
        state.uses = leaf.uses;
        let state = *state;
        self.put(leaf.id, state);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.unmarked
            .first()
            .or_else(|| self.marked.first())
            .map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if let Some(&state) = self.nodes.get(evicted.id) {
            self.move_hand(state, whole);
        }
        if whole {
            self.nodes.remove(evicted.id);
        } else if let Some(state) = self.nodes.get_mut(evicted.id) {
            state.marked = false;
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.nodes.remove(head);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::{ask, asks, victims};

    #[test]
    fn newcomers_are_sifted_and_the_favourite_stays() {
        let paths = asks(&["a", "b", "c", "a", "d", "e", "f", "g", "h"]);
        assert_eq!(victims("sieve", 3, &paths)[4..], ["b", "c", "d", "e", "f"]);
    }

    #[test]
    fn the_hand_wraps_round() {
        // At d all three are marked: the hand passes them and is back at a. At e it goes on with b.
        let paths = asks(&["a", "b", "c", "a", "b", "c", "d", "e"]);
        assert_eq!(victims("sieve", 3, &paths)[6..], ["a", "b"]);
    }

    /// SIEVE of single blocks as the paper writes it.
    struct Naive {
        nodes: Vec<(char, bool)>,
        hand: usize,
    }

    impl Naive {
        fn serve(&mut self, letter: char, capacity: usize) -> String {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.0 == letter) {
                node.1 = true;
                return String::new();
            }
            let victim = if self.nodes.len() < capacity {
                String::new()
            } else {
                self.evict().to_string()
            };
            self.nodes.push((letter, false));
            victim
        }

        fn evict(&mut self) -> char {
            loop {
                let at = self.hand % self.nodes.len();
                self.hand = at;
                if !std::mem::take(&mut self.nodes[at].1) {
                    let victim = self.nodes.remove(at).0;
                    if at == self.nodes.len() {
                        self.hand = 0;
                    }
                    return victim;
                }
                self.hand += 1;
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_list_and_a_hand(letters in prop::collection::vec("[a-h]", 1..80), capacity in 1u64..6) {
            let paths: Vec<_> = letters.iter().map(ask).collect();
            let mut naive = Naive { nodes: Vec::new(), hand: 0 };
            let expected: Vec<_> = letters
                .iter()
                .map(|letter| naive.serve(letter.chars().next().unwrap(), capacity as usize))
                .collect();
            prop_assert_eq!(victims("sieve", capacity, &paths), expected);
        }
    }
}
