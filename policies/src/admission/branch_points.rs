//! Admit down to where paths part.
//!
//! A path is admitted down to its deepest block after which two different continuations were seen, in this request or before, admitted
//! or not; nothing below it. That a path ends is no continuation: a path that was seen before, or only goes on where another
//! ended, shows no branch.

use policy_api::{AdmissionPolicy, BlockId, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "branch-points",
    summary: "admit a path down to the deepest block that two continuations were seen of",
    source: "the reference course",
    idea: "What two paths share, others will share; what only one has is its own. A request's own divergence counts.",
    cost: "two stores per block of the path; one continuation, 4 bytes, for every block ever seen",
    avoid_when: "single paths grow by turns, as conversations do: they never part, so nothing of them is admitted",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(BranchPoints::default()),
};

/// What was seen after a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum After {
    #[default]
    Nothing,
    One(BlockId),
    Several,
}

#[derive(Default)]
struct BranchPoints {
    after: Vec<After>,
}

impl BranchPoints {
    /// Notes what comes after a block, and says whether it is a branch point.
    fn branches(&mut self, block: BlockId, next: BlockId) -> bool {
        if block.index() >= self.after.len() {
            self.after.resize(block.index() + 1, After::Nothing);
        }
        let after = &mut self.after[block.index()];
        *after = match *after {
            After::Nothing => After::One(next),
            After::One(other) if other == next => After::One(next),
            _ => After::Several,
        };
        *after == After::Several
    }
}

impl AdmissionPolicy for BranchPoints {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        let mut deepest = 0;
        for (depth, pair) in (1..).zip(request.path.windows(2)) {
            if self.branches(pair[0], pair[1]) {
                deepest = depth;
            }
        }
        // The last block of a path may be a branch point of earlier ones.
        if let Some(&last) = request.path.last()
            && self.after.get(last.index()) == Some(&After::Several)
        {
            deepest = request.path.len() as u32;
        }
        deepest.max(request.held_blocks)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{admitted, asks};

    #[test]
    fn the_shared_part_comes_in_when_paths_part() {
        let paths = asks(&["abcd", "abxy", "abcd", "abce", "ab", "abcd"]);
        assert_eq!(admitted("branch-points", 9, &paths), [0, 2, 2, 3, 2, 3]);
    }

    #[test]
    fn a_path_that_only_goes_on_shows_no_branch() {
        let paths = asks(&["ab", "ab", "abcd", "abcdef"]);
        assert_eq!(admitted("branch-points", 9, &paths), [0, 0, 0, 0]);
    }
}
