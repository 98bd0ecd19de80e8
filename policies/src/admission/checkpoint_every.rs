//! A state at every so many tokens. Where the blocks of the trace are longer, one at each of them.

use policy_api::{AdmissionPolicy, Candidate, PathInsertion, RequestView};

use crate::entry::{AdmissionEntry, Track};
use params::{Domain, Param};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "checkpoint-every",
    summary: "checkpoint models: admit everything, save a state every so many tokens (a baseline)",
    source: "baseline \"vLLM+\" of Marconi (Pan et al., MLSys 2025): a state at every block of 32 tokens",
    idea: "Whatever prefix is reused, a state is near.",
    cost: "a state at each position, of tens of megabytes with hybrid models; time in proportion to the new blocks",
    avoid_when: "states are heavy: most are never used; it is a baseline",
    params: &[Param {
        name: "tokens",
        default: "32",
        domain: Domain::Count(1, 1 << 20),
        help: "distance of two states; at least a block of the trace",
    }],
    track: Track::Online,
    build: |context, params| {
        let tokens = params.count("tokens").unwrap_or(1);
        let blocks = tokens
            .div_ceil(u64::from(context.cache.block_tokens))
            .max(1);
        let every_blocks = usize::try_from(blocks).expect("within the parameter's bounds");
        Box::new(CheckpointEvery { every_blocks })
    },
};

struct CheckpointEvery {
    every_blocks: usize,
}

impl AdmissionPolicy for CheckpointEvery {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.path.len() as u32
    }

    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        positions: &mut Vec<u32>,
    ) {
        let every = self.every_blocks as u32;
        let first = (request.hit_blocks / every + 1).saturating_mul(every);
        positions.extend((first..=insertion.resident_blocks).step_by(self.every_blocks));
    }
}

#[cfg(test)]
mod tests {
    use policy_api::BlockId;

    use super::*;
    use crate::testing::{context, view};
    use params::Params;

    fn positions(params: &str, block_tokens: u32) -> Vec<u32> {
        let mut context = context(9, 0);
        context.cache.block_tokens = block_tokens;
        let mut policy = (ENTRY.build)(&context, &Params::parse(ENTRY.params, params).unwrap());
        let path: Vec<_> = (0..7).map(BlockId).collect();
        let insertion = PathInsertion {
            resident_blocks: 7,
            diverges_inside_node: false,
        };
        let mut positions = Vec::new();
        policy.checkpoints(&view(&path), insertion, &mut positions);
        positions
    }

    #[test]
    fn a_state_is_saved_every_so_many_tokens_or_at_every_block() {
        assert_eq!(positions("", 16), [2, 4, 6]);
        assert_eq!(positions("tokens=40", 16), [3, 6]);
        assert_eq!(positions("", 64), [1, 2, 3, 4, 5, 6, 7]);
    }
}
