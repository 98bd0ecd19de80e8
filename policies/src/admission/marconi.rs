//! Save a state where it is likely to be used: where prefixes part, and where a conversation stands.
//!
//! ```text
//!   resident  a b c d          a request for  a b x y  leaves that node between its ends, after b, and ends after y:
//!                              states are saved after b, where others with that prefix resume, and after y, where the next
//!                              turn does
//! ```

use policy_api::{AdmissionPolicy, Candidate, PathInsertion, RequestView};

use crate::entry::{AdmissionEntry, Track};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "marconi",
    summary: "checkpoint models: admit everything, save states where prefixes part and at the end",
    source: "Pan et al., Marconi: prefix caching for the era of hybrid LLMs, MLSys 2025",
    idea: "A prefix that several inputs share shows when the second of them parts from it; a conversation resumes after its \
           last decoded token. States anywhere else are not worth their memory.",
    cost: "none",
    avoid_when: "the model's KV is per token (it is all then), or a later turn cuts prompts to a common length",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(MarconiAdmission),
};

pub(crate) struct MarconiAdmission;

impl AdmissionPolicy for MarconiAdmission {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.path.len() as u32
    }

    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        positions: &mut Vec<u32>,
    ) {
        if insertion.diverges_inside_node {
            positions.push(request.held_blocks);
        }
        positions.push(insertion.resident_blocks);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::BlockId;

    use super::*;
    use crate::testing::view;

    #[test]
    fn the_second_occurrence_of_a_prefix_is_saved_and_the_end() {
        let path = [7, 8, 9, 10].map(BlockId);
        let request = RequestView {
            held_blocks: 2,
            ..view(&path)
        };
        let positions = |diverges_inside_node| {
            let insertion = PathInsertion {
                resident_blocks: MarconiAdmission.admit(&request, None),
                diverges_inside_node,
            };
            let mut positions = Vec::new();
            MarconiAdmission.checkpoints(&request, insertion, &mut positions);
            positions
        };
        assert_eq!(positions(true), [2, 4]);
        assert_eq!(positions(false), [4]);
    }
}
