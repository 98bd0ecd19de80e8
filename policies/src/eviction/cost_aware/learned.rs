//! The learned estimators: p follows from how long leaves of the same class have waited until they were used again.
//!
//! What is p(reuse) of something that will be used some day, or never? A leaf that stays takes its GB for as long as it stays, so p
//! is taken per second: uses expected over seconds expected, over the horizon for which that is most (Gittins' index: the
//! best that can be had for keeping this leaf until it is used or given up). It has no horizon to tune: just before the tool
//! returns it looks seconds ahead, after that hours. A fixed `horizon` makes p the chance of a use within that time.
//!
//! Ages are in buckets of an octave from 100 ms on, so within a class and bucket the order is by recompute per GB and changes only
//! when something is learned: the order is exact over all leaves. What happens to a leaf, and who hears of it:
//!
//! ```text
//!   offered            numbers (which class)      order (its place)          survival.joined, if it is not young
//!   used               survival.used              it leaves the order
//!   evicted            watched, with class and age: as before, only that it is no longer resident
//!     used again       survival.used              watched no more
//!     given up         survival.lost              when more than `watched` caches full are watched
//!   left behind        survival.lost, then joined in the class of what sessions left behind (`session` only)
//!   at a fit           survival + counts of order and watched  ->  weights of order, by class and age
//! ```

use params::Params;
use policy_api::{Candidate, NodeId, RequestView};

use super::classes::{ClassNumbers, Classes, LastUse};
use super::sessions::SessionLeaves;
use crate::entry::PolicyContext;
use crate::parts::aging::{Aged, Aging, bucket_of, geometric_edges};
use crate::parts::density::seconds_per_gb;
use crate::parts::ghosts::Ghosts;
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::node_table::NodeTable;
use crate::parts::per_request::PerRequest;
use crate::parts::survival::{Survival, Worth};

const EDGES: usize = 26;
/// Younger leaves are all alike: in that time no cache worth having fills up.
const FIRST_EDGE_US: i64 = 100_000;

/// A leaf that was evicted, and is watched until it is used again or given up.
struct EvictedLeaf {
    class: u32,
    since_us: i64,
    blocks: u32,
}

/// When what every class is worth is computed anew.
struct FitSchedule {
    /// Share of what was counted that is not forgotten at a fit.
    kept: f64,
    /// Requests between two fits, at least.
    refit: u64,
    requests_to_fit: u64,
}

/// Worth by what was learned of leaves of the class at this age.
pub(super) struct Learned {
    classes: Classes,
    numbers: ClassNumbers,
    worth: Worth,
    edges: Vec<i64>,
    now_us: i64,
    last_uses: PerRequest<LastUse>,
    survival: Survival,
    /// What a class is worth that was not there at the last fit.
    common: Vec<f64>,
    schedule: FitSchedule,
    watched: Ghosts<EvictedLeaf>,
    watched_blocks: u64,
    /// Since when a node is watched that was offered before. Offered anew since the same time, it does not join a second time.
    watched_since: NodeTable<i64>,
    /// A request uses the node that ends with its hit; where KV is per token, the last one of its path.
    resumes_from_states: bool,
    sessions: SessionLeaves,
}

impl Learned {
    pub(super) fn policy(
        context: &PolicyContext,
        classes: Classes,
        params: &Params,
    ) -> Keyed<Self> {
        let edges = geometric_edges(FIRST_EDGE_US, 1, EDGES);
        let worth = match params.duration_or_word_us("horizon") {
            Some(us) => Worth::Within(us as f64),
            None => Worth::Rate,
        };
        let caches = params.count("watched").unwrap_or(u64::MAX);
        let mut leaves = Aging::new(edges.clone());
        let mut learned = Self {
            classes,
            numbers: ClassNumbers::new(classes, context.cache.block_tokens),
            worth,
            now_us: 0,
            last_uses: PerRequest::new(),
            survival: Survival::new(edges.clone(), params.number("prior")),
            common: Vec::new(),
            edges,
            schedule: FitSchedule {
                kept: params.number("kept"),
                refit: params.count("refit").unwrap_or(u64::MAX),
                requests_to_fit: 0,
            },
            watched: Ghosts::new(),
            watched_blocks: context.cache.capacity_blocks().saturating_mul(caches),
            watched_since: NodeTable::new(),
            resumes_from_states: context.cache.state.is_some(),
            sessions: SessionLeaves::default(),
        };
        learned.fit(&mut leaves);
        Keyed::ordered_by(learned, leaves)
    }

    fn class_of(&mut self, leaf: &Candidate, last: LastUse, leaves: &mut Aging<LruOrder>) -> u32 {
        let number = self.numbers.of(leaf, last);
        self.known(number, leaves)
    }

    /// The number of a class, which weighs what is common if it is new.
    fn known(&self, (number, is_new): (u32, bool), leaves: &mut Aging<LruOrder>) -> u32 {
        if is_new {
            leaves.weigh(number, |bucket| self.common[bucket]);
        }
        number
    }

    fn bucket(&self, since_us: i64) -> usize {
        bucket_of(&self.edges, self.now_us.saturating_sub(since_us))
    }

    /// Computes anew from all that was seen what every class is worth.
    fn fit(&mut self, leaves: &mut Aging<LruOrder>) {
        let counts = |class| leaves.counts(class);
        let mut alive: Vec<Vec<f64>> = self.numbers.all().map(counts).collect();
        for evicted in self.watched.memories() {
            alive[evicted.class as usize][self.bucket(evicted.since_us)] += 1.0;
        }
        let fit = self.survival.fit(&alive, self.worth);
        for (class, worth) in (0..).zip(&fit.classes) {
            leaves.weigh(class, |bucket| worth[bucket]);
        }
        self.common = fit.common;
        self.survival.fade(self.schedule.kept);
        let tenth_of_watched = self.watched.len() as u64 / 10;
        self.schedule.requests_to_fit = self.schedule.refit.max(tenth_of_watched);
    }

    /// The request uses a leaf, and below it what was evicted of its path. Says whether there was either.
    fn used(
        &mut self,
        request: &RequestView<'_>,
        path: &[Candidate],
        leaves: &Aging<LruOrder>,
    ) -> bool {
        let ends_with_hit =
            |node: &&Candidate| node.depth_blocks + node.blocks == request.hit_blocks;
        let used = if self.resumes_from_states {
            path.iter().find(ends_with_hit)
        } else {
            path.last()
        };
        let leaf = used.and_then(|node| leaves.get(node.id));
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
    fn move_on(&mut self, session: u64, kind: u16, leaves: &mut Aging<LruOrder>) {
        let number = self.numbers.moved_on(kind);
        let class = self.known(number, leaves);
        for id in self.sessions.take(session) {
            if let Some((former, since_us)) = leaves.get(id)
                && former != class
            {
                let bucket = self.bucket(since_us);
                self.survival.lost(former, bucket);
                self.join(class, bucket);
                leaves.reclass(id, class);
            }
        }
    }

    /// Something of the class is watched that is that old already.
    fn join(&mut self, class: u32, bucket: usize) {
        if bucket > 0 {
            self.survival.joined(class, bucket);
        }
    }

    /// Gives up the oldest of what was evicted, as long as too much is watched.
    fn give_up_oldest(&mut self) {
        while self.watched.blocks() > self.watched_blocks
            && let Some(given_up) = self.watched.forget_oldest()
        {
            let bucket = self.bucket(given_up.since_us);
            self.survival.lost(given_up.class, bucket);
        }
    }
}

impl Rule for Learned {
    type Order = Aging<LruOrder>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> Aged<LruOrder> {
        if self.classes == Classes::Session {
            self.sessions.give(leaf.id, Some(leaf.last_session));
        }
        let last = self.last_uses.at(leaf.last_request);
        let since_us = last.arrival_us;
        let class = self.class_of(leaf, last, &mut nodes.order);
        if self.watched_since.get(leaf.id) != Some(&since_us) {
            let bucket = self.bucket(since_us);
            self.join(class, bucket);
        }
        self.watched_since.put(leaf.id, since_us);
        Aged {
            class,
            since: since_us,
            score: seconds_per_gb(leaf),
            tie: lru_order(leaf),
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.now_us = request.arrival_us;
        nodes.order.advance(self.now_us);
        let last = LastUse {
            arrival_us: request.arrival_us,
            called_tool: request.tool.is_some(),
            went_on: self.used(request, path, &nodes.order),
        };
        self.last_uses.note(request.index, last);
        if self.classes == Classes::Session {
            self.move_on(request.session, request.kind, &mut nodes.order);
        }
        self.schedule.requests_to_fit -= 1;
        if self.schedule.requests_to_fit == 0 {
            self.fit(&mut nodes.order);
        }
    }

    fn evicted(&mut self, evicted: &Candidate, nodes: &mut Nodes<Self>) {
        if let Some((class, since_us)) = nodes.order.get(evicted.id) {
            let memory = EvictedLeaf {
                class,
                since_us,
                blocks: evicted.blocks,
            };
            self.watched
                .remember(evicted.first_block, evicted.blocks, memory);
        }
        self.give_up_oldest();
    }

    fn forgotten(&mut self, id: NodeId) {
        self.watched_since.remove(id);
        self.sessions.give(id, None);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::{BlockId, EvictionPolicy, RequestIndex};

    use super::super::ENTRY;
    use super::*;
    use crate::testing::{context, leaf, view};

    fn learned(classes: Classes) -> Keyed<Learned> {
        let params = Params::parse(ENTRY.params, "").unwrap();
        Learned::policy(&context(9, 0), classes, &params)
    }

    fn request(index: u32, path: &[BlockId]) -> RequestView<'_> {
        RequestView {
            index: RequestIndex(index),
            held_blocks: 1,
            ..view(path)
        }
    }

    #[test]
    fn a_session_leaves_behind_what_it_does_not_go_on_with() {
        let mut learned = learned(Classes::Session);
        learned.offer(&Candidate {
            last_session: 7,
            ..leaf(1)
        });
        let before = learned.nodes.order.get(NodeId(1));
        learned.rule.move_on(8, 0, &mut learned.nodes.order);
        assert_eq!(learned.nodes.order.get(NodeId(1)), before);
        learned.rule.move_on(7, 0, &mut learned.nodes.order);
        let (moved_on, is_new) = learned.rule.numbers.moved_on(0);
        assert!(!is_new);
        assert_eq!(learned.nodes.order.get(NodeId(1)), Some((moved_on, 0)));
    }

    #[test]
    fn what_was_evicted_and_is_asked_for_again_is_a_use() {
        let mut learned = learned(Classes::Kind);
        let piece = |first_block: u32, blocks: u32| Candidate {
            first_block: BlockId(first_block),
            blocks,
            ..leaf(1)
        };
        // A node of five blocks goes in two pieces, and then another one.
        for evicted in [piece(13, 2), piece(10, 3), piece(20, 1)] {
            learned.offer(&piece(10, 5));
            learned.evicted(&evicted, false);
        }
        let nobody = vec![vec![0.0; EDGES]];
        let Keyed { rule, nodes } = &mut learned;
        let worth = |rule: &Learned| rule.survival.fit(&nobody, Worth::Rate).classes[0][0];
        let before = worth(rule);
        let path = [9, 10, 11, 12, 13, 14, 15].map(BlockId);
        assert!(rule.used(&request(0, &path), &[], &nodes.order));
        assert!(worth(rule) > before);
        assert_eq!(rule.watched.len(), 1);
    }

    #[test]
    fn a_conversation_that_goes_on_is_told_from_one_that_begins() {
        let mut learned = learned(Classes::Hazard);
        let path = [9, 10].map(BlockId);
        // The first request branches off a template, the second goes on from the first, the third from what was evicted.
        learned.observe(&request(0, &path), &[leaf(9)]);
        learned.offer(&leaf(1));
        learned.observe(&request(1, &path), &[leaf(1)]);
        learned.evicted(&leaf(1), true);
        learned.rule.watched.remember(
            BlockId(10),
            1,
            EvictedLeaf {
                class: 0,
                since_us: 0,
                blocks: 1,
            },
        );
        learned.observe(&request(2, &path), &[leaf(9)]);
        let classes = [0, 1, 2].map(|index| {
            let leaf = Candidate {
                last_request: RequestIndex(index),
                ..leaf(1)
            };
            let last = learned.rule.last_uses.at(leaf.last_request);
            let leaves = &mut learned.nodes.order;
            learned.rule.class_of(&leaf, last, leaves)
        });
        assert!(classes[0] != classes[1] && classes[1] == classes[2]);
    }
}
