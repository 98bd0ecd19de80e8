//! Admit nothing: what a server without a prefix cache saves.

use policy_api::{AdmissionPolicy, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "none",
    summary: "admit nothing (a control)",
    source: "control",
    idea: "A server without a prefix cache.",
    cost: "none",
    avoid_when: "anything should be saved",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Nothing),
};

struct Nothing;

impl AdmissionPolicy for Nothing {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.held_blocks
    }
}
