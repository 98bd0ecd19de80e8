//! Classes of requests, each with its own gap until reuse.
//!
//! The gaps after which nodes of a class were used again are taken as exponential, with the mean seen so far. The exponential has no
//! memory, so all leaves of a class are alike until the next fit (every 256 requests). Nodes of a path that were last used
//! together count as one gap. A class without a gap yet is taken to have the mean of all.

use policy_api::{Candidate, RequestView, Tick};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::groups::{Grouped, Groups};
use crate::parts::keyed::{DeepestFirst, Keyed, Nodes, Rule, deepest_first};
use crate::parts::per_request::PerEvent;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "kvcache-wild",
    summary: "evicts the leaf of the class least likely to be reused within the life span, the deeper first",
    source: "KVCache Cache in the Wild: characterizing and optimizing KVCache cache at a large cloud provider, USENIX ATC 2025 \
             (details ours)",
    idea: "Kind and turn of a request say when its path will be reused: an exponential gap for each class, fitted to the past.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path; classes compared every 256 requests",
    avoid_when: "kind and turn say little about reuse, or requests of a class are reused after very different gaps",
    params: &[Param {
        name: "life-span",
        default: "mean",
        domain: Domain::DurationOr("mean"),
        help: "time within which a reuse counts; mean: the mean time that evicted blocks were resident",
    }],
    track: Track::Online,
    build: BuildEviction::Alone(|_, params| {
        let life_span_us = params.duration_or_word_us("life-span");
        Box::new(Keyed::new(KvCacheWild::new(life_span_us)))
    }),
};

const KINDS: u32 = 32;
const TURNS: u32 = 16;
const REFIT_REQUESTS: u32 = 256;

/// A sum and how many were added.
#[derive(Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64, count: f64) {
        self.sum += value * count;
        self.count += count;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

struct KvCacheWild {
    life_span_us: Option<i64>,
    now_us: i64,
    requests: u32,
    arrivals_us: PerEvent<i64>,
    gaps_us: Vec<Mean>,
    all_gaps_us: Mean,
    residence_us: Mean,
}

impl KvCacheWild {
    fn new(life_span_us: Option<i64>) -> Self {
        Self {
            life_span_us,
            now_us: 0,
            requests: 0,
            arrivals_us: PerEvent::new(),
            gaps_us: vec![Mean::default(); (KINDS * TURNS) as usize],
            all_gaps_us: Mean::default(),
            residence_us: Mean::default(),
        }
    }

    fn us_since(&self, then: Tick) -> f64 {
        self.now_us.saturating_sub(self.arrivals_us.at(then)) as f64
    }

    fn refit(&self, leaves: &mut Groups<DeepestFirst>) {
        let life_span_us = self
            .life_span_us
            .map(|us| us as f64)
            .or(self.residence_us.value())
            .unwrap_or(f64::INFINITY);
        for (class, gap_us) in (0..).zip(&self.gaps_us) {
            let mean_us = gap_us.value().or(self.all_gaps_us.value());
            let reuse = mean_us.map_or(1.0, |mean_us| -(-life_span_us / mean_us.max(1.0)).exp_m1());
            leaves.weigh(class, reuse);
        }
    }
}

fn class_of(node: &Candidate) -> u32 {
    u32::from(node.last_kind).min(KINDS - 1) * TURNS + node.last_step.min(TURNS - 1)
}

impl Rule for KvCacheWild {
    type Order = Groups<DeepestFirst>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> Grouped<DeepestFirst> {
        Grouped {
            group: class_of(leaf),
            score: 1.0,
            tie: deepest_first(leaf),
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.now_us = request.arrival_us;
        self.arrivals_us.note(request.now, request.arrival_us);
        let mut before = None;
        for node in path {
            if before.replace(node.last_used) == Some(node.last_used) {
                continue;
            }
            let gap_us = self.us_since(node.last_used);
            self.gaps_us[class_of(node) as usize].add(gap_us, 1.0);
            self.all_gaps_us.add(gap_us, 1.0);
        }
        self.requests += 1;
        if self.requests.is_multiple_of(REFIT_REQUESTS) {
            self.refit(&mut nodes.order);
        }
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        let resident_us = self.us_since(evicted.created);
        self.residence_us
            .add(resident_us, f64::from(evicted.blocks));
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Ask, ask, asks, victims};

    #[test]
    fn without_a_fit_the_deepest_goes() {
        let paths = asks(&["x", "ab", "abc", "y"]);
        assert_eq!(victims("kvcache-wild", 4, &paths)[3], "c");
    }

    #[test]
    fn the_class_with_the_longer_gap_goes() {
        // Kind 1 is used again after a second, kind 2 after ten. After the fit at request 255 the older "a" of kind 1
        // stays and "b" of kind 2 goes.
        let mut paths: Vec<Ask> = Vec::new();
        for round in 0..127 {
            let kind = 1 + round % 2;
            let start = f64::from(round) * 20.0;
            let gap = if kind == 1 { 1.0 } else { 10.0 };
            let path = if kind == 1 { "a" } else { "b" };
            paths.push(ask(path).kind(kind as u16).at_seconds(start));
            paths.push(ask(path).kind(kind as u16).at_seconds(start + gap));
        }
        for (path, kind, at_s) in [("a", 1, 2551.0), ("b", 2, 2552.0), ("c", 3, 2553.0)] {
            paths.push(ask(path).kind(kind).at_seconds(at_s));
        }
        let spec = "kvcache-wild(life-span=20s)";
        assert_eq!(victims(spec, 2, &paths)[256], "b");
        assert_eq!(victims("lru", 2, &paths)[256], "a");
    }
}
