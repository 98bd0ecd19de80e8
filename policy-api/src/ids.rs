//! Names of things, and the clock.

use core::fmt;

/// A block's dense id within one trace, given in order of first touch: it tells nothing of the future.
///
/// It stands for the whole prefix up to the block's end, so equal ids mean equal paths from the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

impl BlockId {
    /// The id as an index into a table of blocks.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a node of the cache. The id of a node that is dead is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The id as an index into a policy's own table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request's position in its trace, counted from 0. It names the request; it is no clock, because requests that overlap
/// end in another order than they began in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestIndex(pub u32);

impl RequestIndex {
    /// The position as an index into a table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RequestIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A policy's logical clock: how many events the cache has seen. Where requests are served one after another an event is a
/// request; where they overlap, each of a request's look-up, reservations and end is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u32);

impl Tick {
    /// The reading as an index into a table.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Events since an earlier reading; 0 where it is none.
    pub fn since(self, earlier: Tick) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// The reading after the next event.
    pub fn next(self) -> Tick {
        Tick(self.0 + 1)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
