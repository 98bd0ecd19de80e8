//! What LMCache keeps: dear per byte, and used lately.
//!
//! Of every request that uses a node, the tokens from the node's start to the request's end are what a miss there would cost. A moving
//! average of them, in which the latest request has a weight of 0.2, is divided by the node's bytes and by 1 + age / 60 s.
//!
//! All worths fade with time, but never fall with the time of last use or with the average per byte: both orders are walked
//! until the least is certain, which is exact (`parts::two_orders`).

use policy_api::{Candidate, EvictionPolicy, NodeId, RequestView, Victim, WithdrawReason};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::density::bytes;
use crate::parts::keyed::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;
use crate::parts::per_request::PerEvent;
use crate::parts::two_orders::TwoOrders;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lmcache-cost",
    summary: "evicts the smallest average of tokens behind the node's start per byte, over 1 + age / 60 s",
    source: "LMCache (cost-aware policy)",
    idea: "A miss costs everything from the node's start on; per byte, and fading with age.",
    cost: "O(log leaves) per offer, one visit to every node of the path; per victim a walk of leaves that are old or worth little, at \
           worst of all",
    avoid_when: "long nodes are worth their bytes: a node's own length is in the divisor only",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|context, _| {
        Box::new(LmCacheCost::new(context.cache.block_tokens))
    }),
};

/// Weight of the latest request in the average.
const LATEST: f64 = 0.2;
const FADE_US: f64 = 60e6;

struct LmCacheCost {
    block_tokens: u32,
    now_us: i64,
    present_tokens: f64,
    arrivals_us: PerEvent<i64>,
    /// Average tokens of the requests through a node. The node's start is taken off when it is ranked.
    tokens: NodeTable<f64>,
    /// By last use and average per byte.
    leaves: TwoOrders<LruOrder>,
}

impl LmCacheCost {
    fn new(block_tokens: u32) -> Self {
        Self {
            block_tokens,
            now_us: 0,
            present_tokens: 0.0,
            arrivals_us: PerEvent::new(),
            tokens: NodeTable::new(),
            leaves: TwoOrders::new(),
        }
    }
}

fn fade(age_us: i64) -> f64 {
    1.0 / (1.0 + age_us as f64 / FADE_US)
}

impl EvictionPolicy for LmCacheCost {
    fn offer(&mut self, leaf: &Candidate) {
        let present = self.present_tokens;
        let tokens = *self.tokens.entry(leaf.id, || present);
        let start = f64::from(leaf.depth_blocks) * f64::from(self.block_tokens);
        let score = (tokens - start).max(0.0) / bytes(leaf);
        self.leaves.put(leaf.id, lru_order(leaf), score);
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        let worth = |(last_used, ..): LruOrder, score: f64| {
            score * fade(self.now_us.saturating_sub(self.arrivals_us.at(last_used)))
        };
        self.leaves.least(worth).map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.leaves.remove(evicted.id);
        if whole {
            self.tokens.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.tokens.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.tokens.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.arrivals_us.note(request.now, request.arrival_us);
        self.now_us = request.arrival_us;
        self.present_tokens = f64::from(request.prompt_tokens);
        for node in nodes {
            let present = self.present_tokens;
            let tokens = self.tokens.entry(node.id, || present);
            *tokens += LATEST * (present - *tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{ask, asks, victims};

    #[test]
    fn long_requests_through_short_runs_are_worth_most() {
        // Prompts have a token more than blocks: a is worth 2 tokens a byte, "bc" 3/2 and "de" as much but younger.
        let paths = [ask("a"), ask("bc"), ask("de"), ask("f")];
        assert_eq!(victims("lmcache-cost", 5, &paths)[3], "c");
    }

    #[test]
    fn worth_fades_with_age() {
        // After a minute a's 2 count as 1, so that it goes before "bc" with 3/2.
        let paths = |minutes: f64| {
            [
                ask("a").at_seconds(0.0),
                ask("bc").at_seconds(60.0 * minutes),
                ask("d").at_seconds(60.0 * minutes),
            ]
        };
        assert_eq!(victims("lmcache-cost", 3, &paths(1.0))[2], "a");
        assert_eq!(victims("lmcache-cost", 3, &paths(0.2))[2], "c");
    }

    #[test]
    fn the_latest_request_has_a_fifth_of_the_weight() {
        // "a" is on prompts of 2 and 3 tokens: 2.2 a byte, so that it stays before x, y, z with 2, though it is the oldest.
        let paths = asks(&["a", "ab", "x", "y", "z"]);
        assert_eq!(victims("lmcache-cost", 3, &paths)[3..], ["b", "x"]);
    }
}
