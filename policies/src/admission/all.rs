//! Admit the whole path.

use policy_api::{AdmissionPolicy, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "all",
    summary: "admit the whole path (the default)",
    source: "SGLang and vLLM default",
    idea: "Whatever was computed may be asked for again: it is kept until it is evicted.",
    cost: "none",
    avoid_when: "most of what comes is never asked for again",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(All),
};

struct All;

impl AdmissionPolicy for All {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        request.path.len() as u32
    }
}
