//! Session-aware eviction.
//!
//! A touch is a request, a hit one that found a prefix, and the depth that of the session's latest path, in blocks. A leaf belongs to
//! the session that used it last. Every 500 touches all hits are multiplied by 0.9.

use policy_api::{Candidate, RequestView};
use rustc_hash::FxHashMap;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::groups::{Grouped, Groups};
use crate::parts::keyed::{DeepestFirst, Keyed, Nodes, Rule, deepest_first};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "sae",
    summary: "evicts leaves of the session with the lowest score of recency, hits and depth, tail first",
    source: "proposal for vLLM's offload connector (session-aware eviction)",
    idea: "A session comes back as a whole: rank sessions, not blocks. Score = last touch + 1500 * hits + 30000 / (1 + depth \
           / 8); hits fade.",
    cost: "O(log leaves) per offer, amortised; every 500 requests all sessions whose hits have not faded are ranked anew. A hit \
           is worth less than a touch only after 35,000 requests, so that is up to 70 sessions per request in caches that hold \
           so many",
    avoid_when: "sessions share most of what they use, or requests have no sessions",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| Box::new(Keyed::new(Sae::default()))),
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

#[derive(Default)]
struct Sae {
    touches: u64,
    /// Group of a session.
    groups: FxHashMap<u64, u32>,
    /// Sessions by group.
    sessions: Vec<Session>,
    /// Groups of the sessions that have hits.
    hitters: Vec<u32>,
}

impl Sae {
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

    fn fade(&mut self, leaves: &mut Groups<DeepestFirst>) {
        self.hitters.retain(|group| {
            let session = &mut self.sessions[*group as usize];
            session.hits *= FADE;
            if session.hits < NO_HITS {
                session.hits = 0.0;
            }
            leaves.weigh(*group, session.score());
            session.hits > 0.0
        });
    }
}

impl Rule for Sae {
    type Order = Groups<DeepestFirst>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> Grouped<DeepestFirst> {
        Grouped {
            group: self.session(leaf.last_session).group,
            score: 1.0,
            tie: deepest_first(leaf),
        }
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], nodes: &mut Nodes<Self>) {
        self.touches += 1;
        let touches = self.touches;
        let session = self.session(request.session);
        session.last_touch = touches;
        session.depth_blocks = request.path.len() as u32;
        let had_hits = session.hits > 0.0;
        session.hits += f64::from(u8::from(request.hit_blocks > 0));
        let (group, score, has_hits) = (session.group, session.score(), session.hits > 0.0);
        nodes.order.weigh(group, score);
        if has_hits && !had_hits {
            self.hitters.push(group);
        }
        if self.touches.is_multiple_of(FADE_TOUCHES) {
            self.fade(&mut nodes.order);
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
