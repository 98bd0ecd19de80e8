//! Refuse what is too long.

use policy_api::{AdmissionPolicy, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};
use params::{Domain, Param};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "size-cap",
    summary: "refuse paths longer than a share of the cache (a control)",
    source: "control",
    idea: "No single request should empty the cache: a path that is too long is not admitted at all.",
    cost: "none",
    avoid_when: "long paths are the ones that are reused, as the contexts of agents are",
    params: &[Param {
        name: "share",
        default: "0.25",
        domain: Domain::Number(0.0, 1.0),
        help: "longest path admitted, as a share of the capacity",
    }],
    track: Track::Online,
    build: |context, params| {
        let most_blocks = context.cache.capacity_blocks() as f64 * params.number("share");
        Box::new(SizeCap { most_blocks })
    },
};

struct SizeCap {
    most_blocks: f64,
}

impl AdmissionPolicy for SizeCap {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        if request.path.len() as f64 > self.most_blocks {
            request.held_blocks
        } else {
            request.path.len() as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{admitted, asks};

    #[test]
    fn a_long_path_is_refused_beyond_what_is_held() {
        let paths = asks(&["ab", "abc", "abcd"]);
        assert_eq!(admitted("size-cap", 8, &paths), [2, 2, 2]);
        assert_eq!(admitted("size-cap(share=0.5)", 8, &paths), [2, 3, 4]);
    }
}
