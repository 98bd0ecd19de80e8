//! Recency and frequency: a use counts half after every half-life.

use policy_api::{Candidate, Ranked, RequestView, Score};

use crate::parts::density::seconds_per_gb;
use crate::parts::keyed::{LruOrder, Nodes, Rule, lru_order};
use crate::parts::per_request::PerEvent;

/// Worth that halves with every half-life. All leaves fade alike, so log2 of it plus last use / half-life orders them once for all:
///
/// ```text
///   log2(uses * seconds per GB)  +  last use / half-life
///   three uses at 0 s:   log2 3  +   0 / 600
///   one use at 900 s:    log2 1  + 900 / 600            nearly as much: 1.5 half-lives later is worth 2.8 uses
/// ```
pub(super) struct Faded {
    half_life_us: f64,
    counts_uses: bool,
    arrivals_us: PerEvent<i64>,
}

impl Faded {
    /// `counts_uses`: by all uses, not by the last one only.
    pub(super) fn new(half_life_us: i64, counts_uses: bool) -> Self {
        Self {
            half_life_us: half_life_us.max(1) as f64,
            counts_uses,
            arrivals_us: PerEvent::new(),
        }
    }
}

impl Rule for Faded {
    type Order = Ranked<(Score, LruOrder)>;
    /// Uses of a node, faded to its last one.
    type State = f64;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (Score, LruOrder) {
        let uses = if self.counts_uses {
            *nodes.states.entry(leaf.id, || 1.0)
        } else {
            1.0
        };
        let used_us = self.arrivals_us.at(leaf.last_used) as f64;
        let worth = (uses * seconds_per_gb(leaf)).log2() + used_us / self.half_life_us;
        (Score(worth), lru_order(leaf))
    }

    fn wants_path_nodes(&self) -> bool {
        self.counts_uses
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.arrivals_us.note(request.now, request.arrival_us);
        for node in path {
            let used_us = self.arrivals_us.at(node.last_used);
            let age_us = request.arrival_us.saturating_sub(used_us) as f64;
            let uses = nodes.states.entry(node.id, || 1.0);
            *uses = *uses * (-age_us / self.half_life_us).exp2() + 1.0;
        }
    }
}
