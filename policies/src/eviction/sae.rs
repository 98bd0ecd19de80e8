//! Session-aware eviction.
//!
//! Source: a proposal for vLLM's offload connector. A session's score is last touch + 1500 * hits + 30000 / (1 + prefix
//! depth / 8); the leaves of the lowest session go first, tail first. Every 500 touches all hits are multiplied by 0.9.
//!
//! A touch is a request, a hit one that found a prefix, and the depth that of the session's latest path, in blocks. A leaf
//! belongs to the session that used it last.
//!
//! Cost: as `lru`; every 500 requests all sessions whose hits have not faded are ranked anew: a hit is worth less than a
//! touch only after 35,000 requests, so that is up to 70 sessions a request in caches that hold so many. Do not use it where sessions share most of what they use, or where requests have no sessions.

use std::cmp::Reverse;

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Tick, Victim, WithdrawReason};
use rustc_hash::FxHashMap;

use crate::entry::{EvictionEntry, Track};
use crate::parts::groups::Groups;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "sae",
    summary: "leaves of the session with the lowest score of recency, hits and depth go first, tail first",
    source: "proposal for vLLM's offload connector (session-aware eviction)",
    idea: "A session comes back as a whole: rank sessions, not blocks. Score = last touch + 1500 * hits + 30000 / (1 + depth \
           / 8); hits fade.",
    cost: "O(log leaves) per offer, amortised; every 500 requests O(sessions that hit in the last 35,000), up \
           to 70 a request: the one policy whose growth with the cache is more than a logarithm",
    avoid_when: "sessions share most of what they use, or requests have no sessions",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Sae::new()),
};

const TOUCHES_PER_HIT: f64 = 1_500.0;
const TOUCHES_FOR_SHALLOW: f64 = 30_000.0;
const DEPTH_BLOCKS: f64 = 8.0;
const FADE_TOUCHES: u64 = 500;
const FADE: f64 = 0.9;
/// Hits that have faded to less than a touch's worth are none.
const NO_HITS: f64 = 1.0 / TOUCHES_PER_HIT;

#[derive(Clone, Copy, Default)]
struct Session {
    group: u32,
    last_touch: u64,
    hits: f64,
    depth_blocks: u32,
}

impl Session {
    fn score(&self) -> f64 {
        self.last_touch as f64
            + TOUCHES_PER_HIT * self.hits
            + TOUCHES_FOR_SHALLOW / (1.0 + f64::from(self.depth_blocks) / DEPTH_BLOCKS)
    }
}

struct Sae {
    touches: u64,
    /// Group of a session.
    groups: FxHashMap<u64, u32>,
    /// Sessions by group.
    sessions: Vec<Session>,
    /// Groups of the sessions that have hits.
    hitters: Vec<u32>,
    leaves: Groups<(Reverse<u32>, Tick, Tick)>,
}

impl Sae {
    fn new() -> Self {
        Self {
            touches: 0,
            groups: FxHashMap::default(),
            sessions: Vec::new(),
            hitters: Vec::new(),
            leaves: Groups::new(),
        }
    }

    fn session(&mut self, session: u64) -> &mut Session {
        let fresh = self.sessions.len() as u32;
        let group = *self.groups.entry(session).or_insert(fresh);
        if group == fresh {
            self.sessions.push(Session {
                group,
                ..Session::default()
            });
        }
        &mut self.sessions[group as usize]
    }

    fn fade(&mut self) {
        self.hitters.retain(|group| {
            let session = &mut self.sessions[*group as usize];
            session.hits *= FADE;
            if session.hits < NO_HITS {
                session.hits = 0.0;
            }
            self.leaves.weigh(*group, session.score());
            session.hits > 0.0
        });
    }
}

impl EvictionPolicy for Sae {
    fn offer(&mut self, leaf: &Candidate) {
        let group = self.session(leaf.last_session).group;
        let tie = (Reverse(leaf.depth_blocks), leaf.last_used, leaf.created);
        self.leaves.put(leaf.id, group, 1.0, tie);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.leaves.remove(evicted.id);
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate]) {
        self.touches += 1;
        let touches = self.touches;
        let session = self.session(request.session);
        session.last_touch = touches;
        session.depth_blocks = request.path.len() as u32;
        let had_hits = session.hits > 0.0;
        session.hits += f64::from(u8::from(request.hit_blocks > 0));
        let (group, score, has_hits) = (session.group, session.score(), session.hits > 0.0);
        self.leaves.weigh(group, score);
        if has_hits && !had_hits {
            self.hitters.push(group);
        }
        if self.touches.is_multiple_of(FADE_TOUCHES) {
            self.fade();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Ask, ask, victims};

    #[test]
    fn a_hit_is_worth_more_than_recency() {
        let paths = [
            ask("a").session(1, 0),
            ask("a").session(1, 1),
            ask("b").session(2, 0),
            ask("c").session(3, 0),
        ];
        assert_eq!(victims("sae", 2, &paths)[3], "b");
        assert_eq!(victims("lru", 2, &paths)[3], "a");
    }

    #[test]
    fn a_long_path_goes_before_a_short_one() {
        // 30000/(1 + 2/8) against 30000/(1 + 1/8); the deep session goes, tail first.
        let paths = [
            ask("x").session(1, 0),
            ask("ab").session(2, 0),
            ask("c").session(3, 0),
            ask("d").session(4, 0),
        ];
        assert_eq!(victims("sae", 3, &paths)[2..], ["b", "a"]);
    }

    #[test]
    fn hits_fade() {
        // "a" hits at touch 2 and is worth 1502; after 1,000 touches the hit has faded to 1215.
        let goes = |idle: usize| {
            let mut paths: Vec<Ask> = vec![ask("a").session(1, 0), ask("a").session(1, 1)];
            paths.extend((0..idle).map(|_| ask("").session(9, 0)));
            paths.extend([ask("b").session(2, 0), ask("c").session(3, 0)]);
            victims("sae", 2, &paths).pop()
        };
        assert_eq!(goes(400).as_deref(), Some("b"), "403 against 1502");
        assert_eq!(goes(1_300).as_deref(), Some("a"), "1303 against 1217");
    }
}
