//! What leaves are classed by.

use policy_api::Candidate;

/// The facts that make a class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Classes {
    /// The kind of the request that used the leaf last.
    Kind,
    /// Kind, step and whether that request called a tool; a leaf from which its session has moved on is in a class of its own.
    /// So an agent that waits for its tool is told from a one-shot that is over, by silence alone.
    Session,
    /// Kind, depth of the leaf's end, continuations seen below it, and whether the request that used it last went on from a
    /// leaf or branched off: the fourth turn of a conversation is told from the first one, session or not.
    Hazard,
}

/// What is remembered of the request that used a leaf last.
#[derive(Clone, Copy, Default)]
pub(super) struct LastUse {
    pub(super) arrival_us: i64,
    pub(super) called_tool: bool,
    /// It went on from a leaf, or from what was evicted as one.
    pub(super) went_on: bool,
}

const KINDS: u32 = 16;
const STEPS: u32 = 4;
/// The session has moved on, waits for its client, or waits for a tool.
const WAITS: u32 = 3;
const MOVED_ON: u32 = 0;
/// Below 1,024 tokens, 4,096, 16,384 and so on; from 4 million on all are alike.
const DEPTHS: u32 = 8;
const FIRST_DEPTH_TOKENS: u64 = 1_024;
const BRANCHES: u32 = 3;
/// The last request went on from a leaf, or it did not.
const TURNS: u32 = 2;

impl Classes {
    fn count(self) -> u32 {
        match self {
            Self::Kind => KINDS,
            Self::Session => KINDS * STEPS * WAITS,
            Self::Hazard => KINDS * DEPTHS * BRANCHES * TURNS,
        }
    }

    /// The digits of a class, in a number system with as many digits as there are facts.
    fn of(self, leaf: &Candidate, last: LastUse, block_tokens: u32) -> u32 {
        let kind = kind_class(leaf.last_kind);
        match self {
            Self::Kind => kind,
            Self::Session => {
                let step = leaf.last_step.checked_ilog2().map_or(0, |log| log + 1);
                let waits = 1 + u32::from(last.called_tool);
                (kind * STEPS + step.min(STEPS - 1)) * WAITS + waits
            }
            Self::Hazard => {
                let end_blocks = u64::from(leaf.depth_blocks) + u64::from(leaf.blocks);
                let depth = depth_class(end_blocks * u64::from(block_tokens));
                let branches = leaf.children_seen.min(BRANCHES - 1);
                let turn = u32::from(last.went_on);
                ((kind * DEPTHS + depth) * BRANCHES + branches) * TURNS + turn
            }
        }
    }
}

fn kind_class(kind: u16) -> u32 {
    u32::from(kind).min(KINDS - 1)
}

fn depth_class(tokens: u64) -> u32 {
    let octaves = (tokens / FIRST_DEPTH_TOKENS).checked_ilog2();
    octaves.map_or(0, |octaves| octaves / 2 + 1).min(DEPTHS - 1)
}

/// The classes that have occurred, numbered in that order: few of those that could, so tables by number are short.
pub(super) struct ClassNumbers {
    classes: Classes,
    block_tokens: u32,
    numbers: Vec<Option<u32>>,
    numbered: u32,
}

impl ClassNumbers {
    pub(super) fn new(classes: Classes, block_tokens: u32) -> Self {
        Self {
            classes,
            block_tokens,
            numbers: vec![None; classes.count() as usize],
            numbered: 0,
        }
    }

    /// The number of a leaf's class, and whether it is new.
    pub(super) fn of(&mut self, leaf: &Candidate, last: LastUse) -> (u32, bool) {
        self.number(self.classes.of(leaf, last, self.block_tokens))
    }

    /// The number of the class of leaves that sessions of a kind left behind, and whether it is new.
    pub(super) fn moved_on(&mut self, kind: u16) -> (u32, bool) {
        self.number(kind_class(kind) * STEPS * WAITS + MOVED_ON)
    }

    /// The numbers given so far.
    pub(super) fn all(&self) -> std::ops::Range<u32> {
        0..self.numbered
    }

    fn number(&mut self, class: u32) -> (u32, bool) {
        let number = &mut self.numbers[class as usize];
        if let Some(number) = *number {
            return (number, false);
        }
        *number = Some(self.numbered);
        self.numbered += 1;
        (self.numbered - 1, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_in_powers_of_four() {
        let classes = [0, 1_023, 1_024, 4_095, 4_096, 16_384, u64::MAX].map(depth_class);
        assert_eq!(classes, [0, 0, 1, 1, 2, 3, DEPTHS - 1]);
    }
}
