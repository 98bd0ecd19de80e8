//! What a leaf will save: p(reuse) * recompute seconds / GB.
//!
//! Source: this project. A run is worth the prefill that a hit on it would save, by the cost model in force, times the
//! chance of that hit, for the memory it takes; the leaf worth least goes. Recompute per GB is nearly flat (on the
//! reference GPU 69 ms/GB for a prefix of 8,192 tokens, 53 for one of 512), so it is p(reuse) that decides. Five estimators:
//!
//! - `recency`: halves with every half-life since the last use.
//! - `frequency`: uses so far, each halved with every half-life since.
//! - `kind`: learned by the kind of the request that used the leaf last.
//! - `session`: learned by kind, step and whether that request called a tool; a leaf from which its session has moved on is
//!   in a class of its own. So an agent that waits for its tool is told from a one-shot that is over, by silence alone.
//! - `hazard`: learned by kind, depth and number of continuations seen.
//!
//! The learned ones watch every leaf, and for a while what was evicted, until it is used or given up, and keep a life table
//! of the ages at which either happened. From it follows the chance that a leaf of some age is used within the horizon,
//! which by default is how long evicted blocks have been unused on average: the time for which a choice made now matters.
//! Ages are in buckets of an octave from 100 ms on, so within a class and bucket the order is by recompute per
//! GB and changes only when something is learned: the order is exact over all leaves.
//!
//! Cost: `recency` as `lru`; `frequency` also one visit to every run of the path. The learned ones O(log leaves) per offer
//! and bucket of age, and a fit once in as many requests as a tenth of what is watched, 256 at least. Do not use it where
//! LRU is right and every cycle counts.

use policy_api::{Candidate, EvictionPolicy, Ranked, RequestView, RunId, Score, Victim, Why};
use rustc_hash::FxHashMap;

use crate::entry::{EvictionEntry, Setup, Track};
use crate::params::{Domain, Param, Params};
use crate::parts::aging::{Aging, bucket_of, geometric_edges};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::density::seconds_per_gb;
use crate::parts::ghosts::Ghosts;
use crate::parts::per_request::PerRequest;
use crate::parts::run_table::RunTable;
use crate::parts::survival::Survival;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "cost-aware",
    summary: "p(reuse) * recompute seconds / GB, the smallest goes; p learned online",
    source: "this project",
    idea: "A leaf is worth the prefill it will save for the memory it takes. Recompute per GB is nearly flat, so the chance \
           of reuse decides: it is learned from the ages at which leaves like this one were used again. Ages count in \
           buckets of an octave, exact over all leaves within them.",
    cost: "O(log leaves) per offer and age bucket, amortised; a fit every 256 requests or more",
    avoid_when: "LRU is right and every cycle counts",
    params: &[
        Param {
            name: "p",
            default: "hazard",
            domain: Domain::Choice(&["recency", "frequency", "kind", "session", "hazard"]),
            help: "how the chance of reuse is estimated",
        },
        Param {
            name: "half-life",
            default: "600s",
            domain: Domain::Duration,
            help: "recency and frequency: time after which a use counts half",
        },
        Param {
            name: "horizon",
            default: "mean",
            domain: Domain::DurationOr("mean"),
            help: "kind, session, hazard: time within which a reuse counts; mean: how long evicted blocks were unused",
        },
    ],
    track: Track::Online,
    build,
};

fn build(setup: &Setup, params: &Params) -> Box<dyn EvictionPolicy> {
    let half_life_us = params.duration_us("half-life");
    let horizon_us = params.duration_or_word_us("horizon");
    match params.text("p") {
        "recency" => Box::new(Faded::new(half_life_us, false)),
        "frequency" => Box::new(Faded::new(half_life_us, true)),
        "kind" => Box::new(Learned::new(setup, Classes::Kind, horizon_us)),
        "session" => Box::new(Learned::new(setup, Classes::Session, horizon_us)),
        _ => Box::new(Learned::new(setup, Classes::Hazard, horizon_us)),
    }
}

/// Worth that halves with every half-life. All leaves fade alike, so log2 of it plus last use / half-life orders them.
struct Faded {
    half_life_us: f64,
    counts_uses: bool,
    arrivals_us: PerRequest<i64>,
    now_us: i64,
    /// Uses of a run, faded to its last one.
    uses: RunTable<f64>,
    ranked: Ranked<(Score, LruOrder)>,
}

impl Faded {
    fn new(half_life_us: i64, counts_uses: bool) -> Self {
        Self {
            half_life_us: half_life_us.max(1) as f64,
            counts_uses,
            arrivals_us: PerRequest::new(),
            now_us: 0,
            uses: RunTable::new(),
            ranked: Ranked::new(),
        }
    }
}

impl EvictionPolicy for Faded {
    fn offer(&mut self, leaf: &Candidate) {
        let uses = if self.counts_uses {
            *self.uses.entry(leaf.id, || 1.0)
        } else {
            1.0
        };
        let used_us = self.arrivals_us.at(leaf.last_used) as f64;
        let worth = (uses * seconds_per_gb(leaf)).log2() + used_us / self.half_life_us;
        self.ranked.put(leaf.id, (Score(worth), lru_order(leaf)));
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, whole: bool) {
        self.ranked.remove(gone.id);
        if whole {
            self.uses.remove(gone.id);
        }
    }

    fn split(&mut self, head: RunId, tail: RunId) {
        self.uses.split(head, tail);
    }

    fn merge(&mut self, head: RunId, _: RunId, _: u32) {
        self.uses.remove(head);
    }

    fn wants_runs(&self) -> bool {
        self.counts_uses
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.arrivals_us.note(request.index, request.arrival_us);
        for run in runs {
            let age_us = (self.now_us - self.arrivals_us.at(run.last_used)) as f64;
            let uses = self.uses.entry(run.id, || 1.0);
            *uses = *uses * (-age_us / self.half_life_us).exp2() + 1.0;
        }
    }
}

/// What leaves are classed by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Classes {
    Kind,
    Session,
    Hazard,
}

const KINDS: u32 = 16;
const STEPS: u32 = 4;
/// The session has moved on, waits for its client, or waits for a tool.
const WAITS: u32 = 3;
const MOVED_ON: u32 = 0;
const DEPTHS: u32 = 4;
const BRANCHES: u32 = 3;

impl Classes {
    fn count(self) -> u32 {
        match self {
            Self::Kind => KINDS,
            Self::Session => KINDS * STEPS * WAITS,
            Self::Hazard => KINDS * DEPTHS * BRANCHES,
        }
    }
}

const EDGES: usize = 26;
/// Younger leaves are all alike: in that time no cache worth having fills up.
const FIRST_EDGE_US: i64 = 100_000;
const REFIT_REQUESTS: u64 = 256;
const KEPT_AT_REFIT: f64 = 0.98;
/// Evicted blocks are watched for as long as so many caches full were evicted.
const WATCHED_CACHES: u64 = 4;

/// Worth by what was learned of leaves of the class at this age.
struct Learned {
    classes: Classes,
    block_tokens: u32,
    horizon_us: Option<i64>,
    edges: Vec<i64>,
    now_us: i64,
    arrivals_us: PerRequest<i64>,
    called_tool: PerRequest<bool>,
    leaves: Aging<LruOrder>,
    survival: Survival,
    /// Class and last use of what was evicted.
    watched: Ghosts<(u32, i64)>,
    watched_capacity: u64,
    /// Leaves that a session used last. One that is gone, or was used by another since, may still be listed.
    leaves_of: FxHashMap<u64, Vec<RunId>>,
    owners: RunTable<u64>,
    unused_us: f64,
    evicted_blocks: f64,
    requests_to_fit: u64,
}

impl Learned {
    fn new(setup: &Setup, classes: Classes, horizon_us: Option<i64>) -> Self {
        let edges = geometric_edges(FIRST_EDGE_US, 1, EDGES);
        let mut learned = Self {
            classes,
            block_tokens: setup.block_tokens,
            horizon_us,
            now_us: 0,
            arrivals_us: PerRequest::new(),
            called_tool: PerRequest::new(),
            leaves: Aging::new(edges.clone()),
            survival: Survival::new(edges.clone(), classes.count() as usize),
            edges,
            watched: Ghosts::new(),
            watched_capacity: setup.capacity_blocks.saturating_mul(WATCHED_CACHES),
            leaves_of: FxHashMap::default(),
            owners: RunTable::new(),
            unused_us: 0.0,
            evicted_blocks: 0.0,
            requests_to_fit: 0,
        };
        learned.fit();
        learned
    }

    fn class_of(&self, leaf: &Candidate) -> u32 {
        let kind = u32::from(leaf.last_kind).min(KINDS - 1);
        match self.classes {
            Classes::Kind => kind,
            Classes::Session => {
                let step = leaf.last_step.checked_ilog2().map_or(0, |log| log + 1);
                let waits = 1 + u32::from(self.called_tool.at(leaf.last_used));
                (kind * STEPS + step.min(STEPS - 1)) * WAITS + waits
            }
            Classes::Hazard => {
                let tokens = u64::from(leaf.depth_blocks) * u64::from(self.block_tokens);
                let depth = match tokens {
                    0 => 0,
                    1..1_024 => 1,
                    1_024..8_192 => 2,
                    _ => 3,
                };
                (kind * DEPTHS + depth) * BRANCHES + leaf.children_seen.min(BRANCHES - 1)
            }
        }
    }

    fn bucket(&self, since_us: i64) -> usize {
        bucket_of(&self.edges, self.now_us.saturating_sub(since_us))
    }

    /// Computes every class's chances anew from all that was seen.
    fn fit(&mut self) {
        let count = self.classes.count();
        let mut alive: Vec<Vec<f64>> = (0..count).map(|class| self.leaves.counts(class)).collect();
        for &(class, since_us) in self.watched.memories() {
            alive[class as usize][self.bucket(since_us)] += 1.0;
        }
        let fit = self.survival.fit(&alive, self.horizon_us());
        for class in 0..count {
            let chances = fit.chances(class);
            self.leaves.weigh(class, |bucket| chances[bucket]);
        }
        self.survival.fade(KEPT_AT_REFIT);
        self.unused_us *= KEPT_AT_REFIT;
        self.evicted_blocks *= KEPT_AT_REFIT;
        self.requests_to_fit = REFIT_REQUESTS.max(self.watched.len() as u64 / 10);
    }

    fn horizon_us(&self) -> f64 {
        match self.horizon_us {
            Some(us) => us as f64,
            None if self.evicted_blocks > 0.0 => self.unused_us / self.evicted_blocks,
            None => f64::INFINITY,
        }
    }

    /// The leaves that a session used last are behind it once it goes on elsewhere.
    fn move_on(&mut self, session: u64, kind: u16) {
        let class = u32::from(kind).min(KINDS - 1) * STEPS * WAITS + MOVED_ON;
        for id in self.leaves_of.remove(&session).unwrap_or_default() {
            if self.owners.get(id) == Some(&session) {
                self.leaves.reclass(id, class);
            }
        }
    }
}

impl EvictionPolicy for Learned {
    fn offer(&mut self, leaf: &Candidate) {
        if let Some((class, since_us)) = self.watched.recall(leaf.first_block) {
            let bucket = self.bucket(since_us);
            self.survival.used(class, bucket);
        }
        if self.classes == Classes::Session {
            self.owners.put(leaf.id, leaf.last_session);
            let leaves = self.leaves_of.entry(leaf.last_session).or_default();
            leaves.push(leaf.id);
        }
        let since_us = self.arrivals_us.at(leaf.last_used);
        let (class, score) = (self.class_of(leaf), seconds_per_gb(leaf));
        self.leaves
            .offer(leaf.id, class, since_us, score, lru_order(leaf));
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.leaves.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, _: bool) {
        if let Some((class, since_us)) = self.leaves.get(gone.id) {
            self.watched
                .remember(gone.first_block, gone.blocks, (class, since_us));
            self.unused_us += (self.now_us - since_us) as f64 * f64::from(gone.blocks);
            self.evicted_blocks += f64::from(gone.blocks);
        }
        while self.watched.blocks() > self.watched_capacity
            && let Some((class, since_us)) = self.watched.forget_oldest()
        {
            let bucket = self.bucket(since_us);
            self.survival.lost(class, bucket);
        }
        self.leaves.withdraw(gone.id);
    }

    fn wants_runs(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.arrivals_us.note(request.index, request.arrival_us);
        self.called_tool.note(request.index, request.tool.is_some());
        self.leaves.advance(self.now_us);
        if let Some((class, since_us)) = runs.last().and_then(|run| self.leaves.get(run.id)) {
            let bucket = self.bucket(since_us);
            self.survival.used(class, bucket);
        }
        if self.classes == Classes::Session {
            self.move_on(request.session, request.kind);
        }
        self.requests_to_fit -= 1;
        if self.requests_to_fit == 0 {
            self.fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use crate::testing::{Ask, ask, asks, leaf, setup, victims};
    use policy_api::Work;

    const ALL: [&str; 5] = ["recency", "frequency", "kind", "session", "hazard"];

    #[test]
    fn dear_bytes_stay_whatever_the_estimator() {
        for p in ALL {
            let params = Params::parse(ENTRY.params, &format!("p={p}")).unwrap();
            let mut policy = build(&setup(9, 0), &params);
            let cheap = leaf(1);
            policy.offer(&Candidate {
                recompute: Work {
                    seconds: 1.3,
                    flops: 1.0,
                },
                ..leaf(2)
            });
            policy.offer(&cheap);
            assert_eq!(policy.victim(), Some(Victim::run(RunId(1))), "{p}");
            policy.withdraw(RunId(1), Why::Used);
            assert_eq!(policy.victim(), Some(Victim::run(RunId(2))), "{p}");
        }
    }

    #[test]
    fn as_long_as_nothing_is_known_it_is_lru() {
        let paths: Vec<Ask> = asks(&["ab", "c", "abd", "e", "fg", "ab", "h"])
            .into_iter()
            .enumerate()
            .map(|(at, ask)| ask.session(at as u64, 0).at_s(2f64.powi(at as i32)))
            .collect();
        for p in ["recency", "kind", "session"] {
            let spec = format!("cost-aware(p={p},half-life=1s)");
            assert_eq!(victims(&spec, 4, &paths), victims("lru", 4, &paths), "{p}");
        }
    }

    #[test]
    fn frequency_counts_uses_that_are_not_too_old() {
        let paths = asks(&["a", "a", "a", "b", "c", "d"]);
        assert_eq!(
            victims("cost-aware(p=frequency,half-life=1h)", 3, &paths)[5],
            "b"
        );
        // After eight half-lives the three uses count less than b's one.
        let half_second = "cost-aware(p=frequency,half-life=0.5s)";
        assert_eq!(victims(half_second, 3, &paths)[5], "a");
    }

    /// Sessions of two kinds: 1 comes back after five seconds, 2 never. Then a, c and d of kind 1 and b of kind 2.
    fn two_kinds(first: impl Fn(Ask, u32) -> Ask) -> Vec<Ask> {
        let names = |round: u32| {
            let letter = |offset: u32| char::from_u32(0x4e00 + 2 * round + offset).unwrap();
            (letter(0).to_string(), letter(1).to_string())
        };
        let mut paths = Vec::new();
        for round in 0..300 {
            let at_s = f64::from(round) * 10.0;
            let session = u64::from(round);
            let (again, once) = names(round);
            paths.push(first(ask(&again).session(session, 0).at_s(at_s), 1));
            paths.push(first(
                ask(&once).session(1000 + session, 0).at_s(at_s + 1.0),
                2,
            ));
            paths.push(first(ask(&again).session(session, 1).at_s(at_s + 5.0), 1));
        }
        paths.push(first(ask("a").session(9001, 0).at_s(3001.0), 1));
        paths.push(first(ask("b").session(9002, 0).at_s(3002.0), 2));
        paths.push(first(ask("c").session(9003, 0).at_s(3003.0), 1));
        paths.push(first(ask("d").session(9004, 0).at_s(3003.5), 1));
        paths
    }

    #[test]
    fn a_kind_that_does_not_come_back_goes_first() {
        let paths = two_kinds(|ask, kind| ask.kind(kind as u16));
        for p in ["kind", "session", "hazard"] {
            let spec = format!("cost-aware(p={p})");
            let last = victims(&spec, 3, &paths).pop();
            assert_eq!(last.as_deref(), Some("b"), "{p}");
        }
        assert_eq!(victims("lru", 3, &paths).pop().as_deref(), Some("a"));
    }

    #[test]
    fn a_session_that_called_a_tool_is_told_from_one_that_is_over() {
        let tool = |ask: Ask, kind: u32| if kind == 1 { ask.tool(0) } else { ask };
        let paths = two_kinds(tool);
        let last = victims("cost-aware(p=session)", 3, &paths).pop();
        assert_eq!(last.as_deref(), Some("b"));
    }

    #[test]
    fn a_session_leaves_behind_what_it_does_not_go_on_with() {
        let mut learned = Learned::new(&setup(9, 0), Classes::Session, None);
        learned.offer(&Candidate {
            last_session: 7,
            ..leaf(1)
        });
        let before = learned.leaves.get(RunId(1));
        learned.move_on(8, 0);
        assert_eq!(learned.leaves.get(RunId(1)), before);
        learned.move_on(7, 0);
        assert_eq!(learned.leaves.get(RunId(1)), Some((MOVED_ON, 0)));
    }

    #[test]
    fn what_was_evicted_and_comes_back_is_a_use() {
        let mut learned = Learned::new(&setup(9, 0), Classes::Kind, None);
        let gone = leaf(1);
        learned.offer(&gone);
        learned.evicted(&gone, true);
        let nobody = vec![vec![0.0; EDGES]; KINDS as usize];
        let chance = |learned: &Learned| learned.survival.fit(&nobody, 1e6).chances(0)[0];
        let before = chance(&learned);
        learned.offer(&gone);
        assert!(chance(&learned) > before);
        assert_eq!(learned.watched.len(), 0);
    }
}
