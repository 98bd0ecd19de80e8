//! A whole trace through a cache.

use policy_api::{Hints, Policy, Request, RequestIndex};

use crate::{Cache, Outcome, Track};

/// Requests in the order in which they are served, and the hints that a policy may read.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'r> {
    requests: &'r [Request],
    hints: &'r [Hints],
}

impl<'r> Replay<'r> {
    /// Requests for a policy of a track. `hints` are those of each request, or empty where the trace declares none; a policy of
    /// the online track is shown none of them.
    pub fn new(requests: &'r [Request], hints: &'r [Hints], track: Track) -> Self {
        match track {
            Track::Online => Self::without_hints(requests),
            Track::Declared => Self { requests, hints },
        }
    }

    /// Requests of which a policy sees no hints.
    pub fn without_hints(requests: &'r [Request]) -> Self {
        Self {
            requests,
            hints: &[],
        }
    }
}

/// A request that was just served.
#[derive(Clone, Copy)]
pub struct Served<'a> {
    /// Its position in the trace.
    pub index: RequestIndex,
    /// The request.
    pub request: &'a Request,
    /// What happened to it.
    pub outcome: Outcome,
    /// The cache as it is now.
    pub cache: &'a Cache<'a>,
}

impl Cache<'_> {
    /// Serves all requests, one after another, and calls `each` after every one of them.
    ///
    /// # Panics
    /// As [`serve`](Self::serve) does.
    pub fn replay(
        &mut self,
        replay: Replay<'_>,
        policy: &mut dyn Policy,
        mut each: impl FnMut(Served<'_>),
    ) {
        for (index, request) in replay.requests.iter().enumerate() {
            let hints = replay.hints.get(index);
            let index = RequestIndex(index as u32);
            let outcome = self.serve(index, request, hints, policy);
            each(Served {
                index,
                request,
                outcome,
                cache: self,
            });
        }
    }
}
