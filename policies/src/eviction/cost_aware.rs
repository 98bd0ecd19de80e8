//! What a leaf will save: p(reuse) * recompute seconds / GB.
//!
//! Source: this project. A node is worth the prefill that a hit on it would save, by the cost model in force, times the
//! chance of that hit, for the memory it takes; the leaf worth least goes. Recompute per GB is nearly flat (on the
//! reference GPU 69 ms/GB for a prefix of 8,192 tokens, 53 for one of 512), so it is p(reuse) that decides. Five estimators:
//!
//! - `recency`: halves with every half-life since the last use.
//! - `frequency`: uses so far, each halved with every half-life since.
//! - `kind`: learned by the kind of the request that used the leaf last.
//! - `session`: learned by kind, step and whether that request called a tool; a leaf from which its session has moved on is
//!   in a class of its own. So an agent that waits for its tool is told from a one-shot that is over, by silence alone.
//! - `hazard`: learned by kind, depth of its end, continuations seen below it, and whether the request that used it last went
//!   on from a leaf or branched off: the fourth turn of a conversation is told from the first one, session or not.
//!
//! The learned ones watch every leaf, and for a while what was evicted, until it is used or given up, and keep a life table
//! of the ages at which either happened. What is p(reuse) of something that will be used some day, or never? A leaf that
//! stays takes its GB for as long as it stays, so p is taken per second: uses expected over seconds expected, over the
//! horizon for which that is most (Gittins' index: the best that can be had for keeping this leaf until it is used or given
//! up). It has no horizon to tune: just before the tool returns it looks seconds ahead, after that hours. A fixed `horizon`
//! makes p the chance of a use within that time.
//!
//! Ages are in buckets of an octave from 100 ms on, so within a class and bucket the order is by recompute per
//! GB and changes only when something is learned: the order is exact over all leaves. How it was tuned and how it does:
//! docs/cost-aware.md.
//!
//! Cost: `recency` as `lru`; `frequency` also one visit to every node of the path. The learned ones O(log leaves) per offer
//! and bucket of age, a look at every evicted node that the path has, and a fit once in as many requests as a tenth of
//! what is watched, `refit` at least. Do not use it where LRU is right and every cycle counts.

use policy_api::{
    Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Score, Victim, WithdrawReason,
};
use rustc_hash::FxHashMap;

use crate::entry::{EvictionEntry, PolicyContext, Track};
use crate::parts::aging::{Aging, bucket_of, geometric_edges};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::density::seconds_per_gb;
use crate::parts::ghosts::Ghosts;
use crate::parts::node_table::NodeTable;
use crate::parts::per_request::{PerEvent, PerRequest};
use crate::parts::survival::{Survival, Worth};
use params::{Domain, Param, Params};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "cost-aware",
    summary: "p(reuse) * recompute seconds / GB, the smallest goes; p learned online",
    source: "this project",
    idea: "A leaf is worth the prefill it will save for the memory it takes. Recompute per GB is nearly flat, so the chance \
           of reuse decides: it is learned from the ages at which leaves like this one were used again, and taken per \
           second of the horizon that makes it most. Ages count in buckets of an octave, exact over all leaves within them.",
    cost: "O(log leaves) per offer and age bucket, amortised; a fit every 64 requests or more",
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
            default: "best",
            domain: Domain::DurationOr("best"),
            help: "kind, session, hazard: time within which a reuse counts; best: by the second, as long as pays best",
        },
        Param {
            name: "prior",
            default: "4",
            domain: Domain::Number(0.001, 1e6),
            help: "kind, session, hazard: observations after which a class counts as much as all classes do",
        },
        Param {
            name: "refit",
            default: "64",
            domain: Domain::Count(1, 1_000_000),
            help: "kind, session, hazard: requests between two fits, at least",
        },
        Param {
            name: "kept",
            default: "0.98",
            domain: Domain::Number(0.0, 1.0),
            help: "kind, session, hazard: share of what was counted that is not forgotten at a fit",
        },
        Param {
            name: "watched",
            default: "4",
            domain: Domain::Count(0, 1_000),
            help: "kind, session, hazard: how many caches full of evicted blocks are watched",
        },
    ],
    track: Track::Online,
    build,
};

fn build(context: &PolicyContext, params: &Params) -> Box<dyn EvictionPolicy> {
    let half_life_us = params.duration_us("half-life");
    let learned = |classes| Box::new(Learned::new(context, classes, params));
    match params.text("p") {
        "recency" => Box::new(Faded::new(half_life_us, false)),
        "frequency" => Box::new(Faded::new(half_life_us, true)),
        "kind" => learned(Classes::Kind),
        "session" => learned(Classes::Session),
        _ => learned(Classes::Hazard),
    }
}

/// Worth that halves with every half-life. All leaves fade alike, so log2 of it plus last use / half-life orders them.
struct Faded {
    half_life_us: f64,
    counts_uses: bool,
    arrivals_us: PerEvent<i64>,
    now_us: i64,
    /// Uses of a node, faded to its last one.
    uses: NodeTable<f64>,
    ranked: Ranked<(Score, LruOrder)>,
}

impl Faded {
    fn new(half_life_us: i64, counts_uses: bool) -> Self {
        Self {
            half_life_us: half_life_us.max(1) as f64,
            counts_uses,
            arrivals_us: PerEvent::new(),
            now_us: 0,
            uses: NodeTable::new(),
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

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.ranked.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.ranked.remove(evicted.id);
        if whole {
            self.uses.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.uses.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.uses.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        self.counts_uses
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.arrivals_us.note(request.now, request.arrival_us);
        for node in nodes {
            let age_us = (self.now_us - self.arrivals_us.at(node.last_used)) as f64;
            let uses = self.uses.entry(node.id, || 1.0);
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
/// Below 1,024 tokens, 4,096, 16,384 and so on; from 4 million on all are alike.
const DEPTHS: u32 = 8;
const FIRST_DEPTH_TOKENS: u64 = 1_024;
const BRANCHES: u32 = 3;
/// The last request went on from a leaf, or it did not.
const TURNS: u32 = 2;

impl Classes {
    fn count(self) -> u32 {
        match self {
            Self::Kind => KINDS,
            Self::Session => KINDS * STEPS * WAITS,
            Self::Hazard => KINDS * DEPTHS * BRANCHES * TURNS,
        }
    }
}

fn kind_class(kind: u16) -> u32 {
    u32::from(kind).min(KINDS - 1)
}

fn depth_class(tokens: u64) -> u32 {
    let octaves = (tokens / FIRST_DEPTH_TOKENS).checked_ilog2();
    octaves.map_or(0, |octaves| octaves / 2 + 1).min(DEPTHS - 1)
}

const EDGES: usize = 26;
/// Younger leaves are all alike: in that time no cache worth having fills up.
const FIRST_EDGE_US: i64 = 100_000;

/// What policies remember of the request that used a leaf last.
#[derive(Clone, Copy, Default)]
struct Last {
    arrival_us: i64,
    called_tool: bool,
    /// It went on from a leaf, or from what was evicted as one.
    went_on: bool,
}

/// A leaf that was evicted.
struct Gone {
    class: u32,
    since_us: i64,
    blocks: u32,
}

/// Worth by what was learned of leaves of the class at this age.
struct Learned {
    classes: Classes,
    /// The classes that have occurred are numbered in that order.
    numbers: Vec<Option<u32>>,
    numbered: u32,
    block_tokens: u32,
    worth: Worth,
    edges: Vec<i64>,
    now_us: i64,
    lasts: PerRequest<Last>,
    leaves: Aging<LruOrder>,
    survival: Survival,
    /// What a class is worth that was not there at the last fit.
    common: Vec<f64>,
    watched: Ghosts<Gone>,
    watched_blocks: u64,
    /// Since when a node is watched that was offered before. Offered anew since the same time, it does not join a second time.
    watched_since: NodeTable<i64>,
    /// A request uses the node that ends with its hit; where KV is per token, the last one of its path.
    resumes_from_states: bool,
    /// Nodes that a session used last, and whose they are.
    leaves_of: FxHashMap<u64, Vec<NodeId>>,
    owners: NodeTable<u64>,
    kept: f64,
    refit: u64,
    requests_to_fit: u64,
}

impl Learned {
    fn new(context: &PolicyContext, classes: Classes, params: &Params) -> Self {
        let edges = geometric_edges(FIRST_EDGE_US, 1, EDGES);
        let worth = match params.duration_or_word_us("horizon") {
            Some(us) => Worth::Within(us as f64),
            None => Worth::Rate,
        };
        let caches = params.count("watched").unwrap_or(u64::MAX);
        let mut learned = Self {
            classes,
            numbers: vec![None; classes.count() as usize],
            numbered: 0,
            block_tokens: context.cache.block_tokens,
            worth,
            now_us: 0,
            lasts: PerRequest::new(),
            leaves: Aging::new(edges.clone()),
            survival: Survival::new(edges.clone(), params.number("prior")),
            common: Vec::new(),
            edges,
            watched: Ghosts::new(),
            watched_blocks: context.cache.capacity_blocks().saturating_mul(caches),
            watched_since: NodeTable::new(),
            resumes_from_states: context.cache.state.is_some(),
            leaves_of: FxHashMap::default(),
            owners: NodeTable::new(),
            kept: params.number("kept"),
            refit: params.count("refit").unwrap_or(u64::MAX),
            requests_to_fit: 0,
        };
        learned.fit();
        learned
    }

    fn class_of(&mut self, leaf: &Candidate) -> u32 {
        let kind = kind_class(leaf.last_kind);
        let last = self.lasts.at(leaf.last_request);
        let class = match self.classes {
            Classes::Kind => kind,
            Classes::Session => {
                let step = leaf.last_step.checked_ilog2().map_or(0, |log| log + 1);
                let waits = 1 + u32::from(last.called_tool);
                (kind * STEPS + step.min(STEPS - 1)) * WAITS + waits
            }
            Classes::Hazard => {
                let end_blocks = u64::from(leaf.depth_blocks) + u64::from(leaf.blocks);
                let depth = depth_class(end_blocks * u64::from(self.block_tokens));
                let branches = leaf.children_seen.min(BRANCHES - 1);
                let turn = u32::from(last.went_on);
                ((kind * DEPTHS + depth) * BRANCHES + branches) * TURNS + turn
            }
        };
        self.number(class)
    }

    /// The number of a class, which gets one if it has none.
    fn number(&mut self, class: u32) -> u32 {
        if let Some(number) = self.numbers[class as usize] {
            return number;
        }
        let number = self.numbered;
        self.numbered += 1;
        self.numbers[class as usize] = Some(number);
        let common = &self.common;
        self.leaves.weigh(number, |bucket| common[bucket]);
        number
    }

    fn bucket(&self, since_us: i64) -> usize {
        bucket_of(&self.edges, self.now_us.saturating_sub(since_us))
    }

    /// Computes anew from all that was seen what every class is worth.
    fn fit(&mut self) {
        let counts = |class| self.leaves.counts(class);
        let mut alive: Vec<Vec<f64>> = (0..self.numbered).map(counts).collect();
        for evicted in self.watched.memories() {
            alive[evicted.class as usize][self.bucket(evicted.since_us)] += 1.0;
        }
        let fit = self.survival.fit(&alive, self.worth);
        for (class, worth) in (0..).zip(&fit.classes) {
            self.leaves.weigh(class, |bucket| worth[bucket]);
        }
        self.common = fit.common;
        self.survival.fade(self.kept);
        self.requests_to_fit = self.refit.max(self.watched.len() as u64 / 10);
    }

    /// The request uses a leaf, and below it what was evicted of its path. Says whether there was either.
    fn used(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) -> bool {
        let ends_with_hit =
            |node: &&Candidate| node.depth_blocks + node.blocks == request.hit_blocks;
        let used = match self.resumes_from_states {
            true => nodes.iter().find(ends_with_hit),
            false => nodes.last(),
        };
        let leaf = used.and_then(|node| self.leaves.get(node.id));
        if let Some((class, since_us)) = leaf {
            let bucket = self.bucket(since_us);
            self.survival.used(class, bucket);
        }
        let held = request.held_blocks as usize;
        let mut at = held;
        while let Some(block) = request.path.get(at)
            && let Some(evicted) = self.watched.recall(*block)
        {
            let bucket = self.bucket(evicted.since_us);
            self.survival.used(evicted.class, bucket);
            at += evicted.blocks as usize;
        }
        leaf.is_some() || at > held
    }

    /// The leaves that a session used last are behind it once it goes on elsewhere.
    fn move_on(&mut self, session: u64, kind: u16) {
        let class = self.number(kind_class(kind) * STEPS * WAITS + MOVED_ON);
        for id in self.leaves_of.remove(&session).unwrap_or_default() {
            self.owners.remove(id);
            if let Some((former, since_us)) = self.leaves.get(id)
                && former != class
            {
                let bucket = self.bucket(since_us);
                self.survival.lost(former, bucket);
                self.join(class, bucket);
                self.leaves.reclass(id, class);
            }
        }
    }

    /// Something of the class is watched that is that old already.
    fn join(&mut self, class: u32, bucket: usize) {
        if bucket > 0 {
            self.survival.joined(class, bucket);
        }
    }

    /// Notes whose a leaf is, or that it is nobody's.
    fn give(&mut self, id: NodeId, session: Option<u64>) {
        let former = self.owners.remove(id);
        if let Some(former) = former.filter(|former| Some(*former) != session)
            && let Some(leaves) = self.leaves_of.get_mut(&former)
        {
            leaves.retain(|leaf| *leaf != id);
            if leaves.is_empty() {
                self.leaves_of.remove(&former);
            }
        }
        if let Some(session) = session {
            self.owners.put(id, session);
            if former != Some(session) {
                self.leaves_of.entry(session).or_default().push(id);
            }
        }
    }

    fn forget(&mut self, id: NodeId) {
        self.watched_since.remove(id);
        self.give(id, None);
    }
}

impl EvictionPolicy for Learned {
    fn offer(&mut self, leaf: &Candidate) {
        if self.classes == Classes::Session {
            self.give(leaf.id, Some(leaf.last_session));
        }
        let since_us = self.lasts.at(leaf.last_request).arrival_us;
        let (class, score) = (self.class_of(leaf), seconds_per_gb(leaf));
        let bucket = self.bucket(since_us);
        if self.watched_since.get(leaf.id) != Some(&since_us) {
            self.join(class, bucket);
        }
        self.watched_since.put(leaf.id, since_us);
        self.leaves
            .offer(leaf.id, class, since_us, score, lru_order(leaf));
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        if let Some((class, since_us)) = self.leaves.get(evicted.id) {
            let memory = Gone {
                class,
                since_us,
                blocks: evicted.blocks,
            };
            self.watched
                .remember(evicted.first_block, evicted.blocks, memory);
        }
        while self.watched.blocks() > self.watched_blocks
            && let Some(given_up) = self.watched.forget_oldest()
        {
            let bucket = self.bucket(given_up.since_us);
            self.survival.lost(given_up.class, bucket);
        }
        self.leaves.withdraw(evicted.id);
        if whole {
            self.forget(evicted.id);
        }
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.forget(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.leaves.advance(self.now_us);
        let last = Last {
            arrival_us: request.arrival_us,
            called_tool: request.tool.is_some(),
            went_on: self.used(request, nodes),
        };
        self.lasts.note(request.index, last);
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
    use crate::testing::{Ask, ask, asks, context, leaf, victims, view};
    use params::Params;
    use policy_api::{RequestIndex, Work};

    const ALL: [&str; 5] = ["recency", "frequency", "kind", "session", "hazard"];

    #[test]
    fn dear_bytes_stay_whatever_the_estimator() {
        for p in ALL {
            let params = Params::parse(ENTRY.params, &format!("p={p}")).unwrap();
            let mut policy = build(&context(9, 0), &params);
            let cheap = leaf(1);
            policy.offer(&Candidate {
                recompute: Work {
                    seconds: 1.3,
                    flops: 1.0,
                },
                ..leaf(2)
            });
            policy.offer(&cheap);
            assert_eq!(policy.victim(), Some(Victim::node(NodeId(1))), "{p}");
            policy.withdraw(NodeId(1), WithdrawReason::Used);
            assert_eq!(policy.victim(), Some(Victim::node(NodeId(2))), "{p}");
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

    fn learned(classes: Classes) -> Learned {
        Learned::new(
            &context(9, 0),
            classes,
            &Params::parse(ENTRY.params, "").unwrap(),
        )
    }

    #[test]
    fn a_session_leaves_behind_what_it_does_not_go_on_with() {
        let mut learned = learned(Classes::Session);
        learned.offer(&Candidate {
            last_session: 7,
            ..leaf(1)
        });
        let before = learned.leaves.get(NodeId(1));
        learned.move_on(8, 0);
        assert_eq!(learned.leaves.get(NodeId(1)), before);
        learned.move_on(7, 0);
        let moved_on = learned.number(MOVED_ON);
        assert_eq!(learned.leaves.get(NodeId(1)), Some((moved_on, 0)));
    }

    #[test]
    fn what_was_evicted_and_is_wanted_again_is_a_use() {
        let mut learned = learned(Classes::Kind);
        let piece = |first_block: u32, blocks: u32| Candidate {
            first_block,
            blocks,
            ..leaf(1)
        };
        // A node of five blocks goes in two pieces, and then another one.
        for evicted in [piece(13, 2), piece(10, 3), piece(20, 1)] {
            learned.offer(&piece(10, 5));
            learned.evicted(&evicted, false);
        }
        let nobody = vec![vec![0.0; EDGES]];
        let worth = |learned: &Learned| learned.survival.fit(&nobody, Worth::Rate).classes[0][0];
        let before = worth(&learned);
        let request = RequestView {
            held_blocks: 1,
            ..view(&[9, 10, 11, 12, 13, 14, 15])
        };
        assert!(learned.used(&request, &[]));
        assert!(worth(&learned) > before);
        assert_eq!(learned.watched.len(), 1);
    }

    #[test]
    fn depths_are_in_powers_of_four() {
        let classes = [0, 1_023, 1_024, 4_095, 4_096, 16_384, u64::MAX].map(depth_class);
        assert_eq!(classes, [0, 0, 1, 1, 2, 3, DEPTHS - 1]);
    }

    #[test]
    fn a_conversation_that_goes_on_is_told_from_one_that_begins() {
        let mut learned = learned(Classes::Hazard);
        let request = |index: u32| RequestView {
            index: RequestIndex(index),
            held_blocks: 1,
            ..view(&[9, 10])
        };
        // The first request branches off a template, the second goes on from the first, the third from what was evicted.
        learned.observe(&request(0), &[leaf(9)]);
        learned.offer(&leaf(1));
        learned.observe(&request(1), &[leaf(1)]);
        learned.evicted(&leaf(1), true);
        learned.watched.remember(
            10,
            1,
            Gone {
                class: 0,
                since_us: 0,
                blocks: 1,
            },
        );
        learned.observe(&request(2), &[leaf(9)]);
        let classes = [0, 1, 2].map(|index| {
            learned.class_of(&Candidate {
                last_request: RequestIndex(index),
                ..leaf(1)
            })
        });
        assert!(classes[0] != classes[1] && classes[1] == classes[2]);
    }
}
