//! Wrong answers of a policy.

use core::fmt;

use crate::NodeId;

/// A wrong answer of a policy. The cache goes on without it: it evicts the deepest candidate of the request's own path, or, where
/// there is none, the first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFault {
    /// The victim is not evictable.
    NotEvictable(NodeId),
    /// The victim is to lose no block at all.
    NoBlocks(NodeId),
    /// No victim was named though nodes are evictable.
    NoVictim,
    /// The admission is outside `held..=path`.
    AdmissionOutOfRange {
        /// The answer.
        blocks: u32,
        /// The least right answer.
        held: u32,
        /// The greatest right answer.
        path: u32,
    },
    /// A state is to be saved outside the path.
    CheckpointOutOfRange {
        /// The depth, in blocks.
        blocks: u32,
        /// Blocks of the path.
        path: u32,
    },
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEvictable(id) => write!(f, "the victim, node {}, is not evictable", id.0),
            Self::NoBlocks(id) => write!(f, "of the victim, node {}, no block is to go", id.0),
            Self::NoVictim => write!(f, "no victim was named though nodes are evictable"),
            Self::AdmissionOutOfRange { blocks, held, path } => {
                write!(
                    f,
                    "{blocks} blocks were admitted where {held} are held and the path has {path}"
                )
            }
            Self::CheckpointOutOfRange { blocks, path } => write!(
                f,
                "a state is to be saved {blocks} blocks deep on a path of {path}"
            ),
        }
    }
}
