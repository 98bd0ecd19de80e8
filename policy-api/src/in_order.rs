//! The smallest first: a queue of what comes in order, a heap of the rest.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Reverse;
use core::mem;

/// A bag of entries, the smallest first. An entry that is not below the last of the queue joins it for O(1), any other the heap
/// for O(log n).
#[derive(Debug)]
pub struct InOrder<E> {
    queue: VecDeque<E>,
    heap: BinaryHeap<Reverse<E>>,
}

impl<E: Ord> InOrder<E> {
    /// An empty bag.
    pub fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Puts an entry in.
    pub fn push(&mut self, entry: E) {
        if self.queue.back().map_or(true, |last| *last <= entry) {
            self.queue.push_back(entry);
        } else {
            self.heap.push(Reverse(entry));
        }
    }

    /// The smallest entry.
    pub fn first(&self) -> Option<&E> {
        let heaped = self.heap.peek().map(|Reverse(entry)| entry);
        match (self.queue.front(), heaped) {
            (Some(queued), Some(heaped)) => Some(queued.min(heaped)),
            (queued, heaped) => queued.or(heaped),
        }
    }

    /// Drops entries from the front of both parts until neither front is to be dropped: then nor is the smallest of all.
    pub fn drop_while(&mut self, drops: impl Fn(&E) -> bool) {
        while self.queue.front().map_or(false, &drops) {
            self.queue.pop_front();
        }
        while self
            .heap
            .peek()
            .map_or(false, |Reverse(entry)| drops(entry))
        {
            self.heap.pop();
        }
    }

    /// Drops all entries that do not stay.
    pub fn retain(&mut self, stays: impl Fn(&E) -> bool) {
        self.queue.retain(&stays);
        let mut heaped = mem::take(&mut self.heap).into_vec();
        heaped.retain(|Reverse(entry)| stays(entry));
        self.heap = heaped.into();
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.queue.len() + self.heap.len()
    }

    /// Whether the bag is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E: Ord> Default for InOrder<E> {
    fn default() -> Self {
        Self::new()
    }
}
