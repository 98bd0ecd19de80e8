//! LHD: least hit density.
//!
//! As a node of n blocks hits n times and takes n times the room, its length cancels out.
//!
//! Ages are in requests since the last use, in buckets of an octave from 16 on; classes are the uses since admission (1, 2, 3,
//! more). Every 1,000 requests the densities are computed anew and what was counted loses a tenth. One pretended use after
//! a life as long as the age itself makes it LRU as long as nothing is known.

use policy_api::{Candidate, RequestView};

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::aging::{Aged, Aging, bucket_of, geometric_edges};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lhd",
    summary: "evicts the leaf of the least expected hits per block and request, learned by age",
    source: "Beckmann, Chen and Cidon, LHD: improving cache hit rate by maximizing hit density, NSDI 2018",
    idea: "From the ages at which nodes were used or evicted follows the hit density of a node of some age: the chance of a use \
           over the time that it is still expected to take up room. Exact over all leaves within age buckets of an octave, where \
           the paper samples 64.",
    cost: "O(log leaves) per offer and age bucket, amortised; one visit to every node of the path",
    avoid_when: "age since the last use says little",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Alone(|_, _| {
        let mut leaves = Aging::new(edges());
        let mut lhd = Lhd::new();
        lhd.refit(&mut leaves);
        Box::new(Keyed::ordered_by(lhd, leaves))
    }),
};

const CLASSES: usize = 4;
const BUCKETS: usize = 28;
/// Younger nodes are all alike: in that time no cache worth having fills up.
const FIRST_EDGE: i64 = 16;
const REFIT_REQUESTS: u32 = 1_000;
const KEPT_AT_REFIT: f64 = 0.9;

fn edges() -> Vec<i64> {
    geometric_edges(FIRST_EDGE, 1, BUCKETS)
}

/// Uses and evictions by age.
#[derive(Clone)]
struct EndsByAge {
    used: [f64; BUCKETS],
    evicted: [f64; BUCKETS],
}

struct Lhd {
    edges: Vec<i64>,
    counts: Vec<EndsByAge>,
    now: i64,
    requests: u32,
}

impl Lhd {
    fn new() -> Self {
        let none = EndsByAge {
            used: [0.0; BUCKETS],
            evicted: [0.0; BUCKETS],
        };
        Self {
            edges: edges(),
            counts: vec![none; CLASSES],
            now: 0,
            requests: 0,
        }
    }

    fn refit(&mut self, leaves: &mut Aging<LruOrder>) {
        for (class, counts) in (0..).zip(&mut self.counts) {
            let densities = densities(&self.edges, counts);
            leaves.weigh(class, |bucket| densities[bucket]);
            for count in counts.used.iter_mut().chain(&mut counts.evicted) {
                *count *= KEPT_AT_REFIT;
            }
        }
    }

    fn place(&self, node: &Candidate) -> (usize, usize) {
        let age = self.now - i64::from(node.last_used.0);
        (class_of(node), bucket_of(&self.edges, age))
    }
}

fn class_of(node: &Candidate) -> usize {
    (node.uses.max(1) as usize - 1).min(CLASSES - 1)
}

/// The hit density at every age: uses to come over room to be taken, of all nodes that got that old.
fn densities(edges: &[i64], counts: &EndsByAge) -> [f64; BUCKETS] {
    let mut densities = [0.0; BUCKETS];
    let (mut used, mut ended, mut room) = (0.0, 0.0, 0.0);
    for bucket in (0..BUCKETS).rev() {
        let age = edges[bucket] as f64;
        let width = edges.get(bucket + 1).map_or(0.0, |next| *next as f64 - age);
        used += counts.used[bucket];
        ended += counts.used[bucket] + counts.evicted[bucket];
        room += ended * width;
        densities[bucket] = (used + 1.0) / (room + age + 1.0);
    }
    densities
}

impl Rule for Lhd {
    type Order = Aging<LruOrder>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> Aged<LruOrder> {
        Aged {
            class: class_of(leaf) as u32,
            since: i64::from(leaf.last_used.0),
            score: 1.0,
            tie: lru_order(leaf),
        }
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.now = i64::from(request.now.0);
        nodes.order.advance(self.now);
        for node in path {
            let (class, bucket) = self.place(node);
            self.counts[class].used[bucket] += 1.0;
        }
        self.requests += 1;
        if self.requests.is_multiple_of(REFIT_REQUESTS) {
            self.refit(&mut nodes.order);
        }
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        let (class, bucket) = self.place(evicted);
        self.counts[class].evicted[bucket] += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{asks, victims};

    #[test]
    fn as_long_as_nothing_is_known_it_is_lru() {
        let paths = asks(&["a", "b", "c", "a", "d", "e", "ab", "f"]);
        assert_eq!(victims("lhd", 3, &paths), victims("lru", 3, &paths));
    }

    #[test]
    fn density_is_uses_over_room() {
        // Ages 0, 1, 2, 3, 4 and so on. Ten nodes lived to age 2: eight were used there, two went there.
        let edges = geometric_edges(1, 2, BUCKETS);
        let mut counts = EndsByAge {
            used: [0.0; BUCKETS],
            evicted: [0.0; BUCKETS],
        };
        counts.used[2] = 8.0;
        counts.evicted[2] = 2.0;
        let densities = densities(&edges, &counts);
        let expected = [9.0 / 31.0, 9.0 / 22.0, 9.0 / 13.0, 1.0 / 4.0, 1.0 / 5.0];
        for (bucket, expected) in expected.into_iter().enumerate() {
            assert!((densities[bucket] - expected).abs() < 1e-12, "{bucket}");
        }
    }

    #[test]
    fn a_class_that_is_never_used_goes_before_one_that_is() {
        let mut lhd = Lhd::new();
        lhd.counts[0].evicted[3] = 1000.0;
        lhd.counts[1].used[9] = 1000.0;
        lhd.refit(&mut Aging::new(edges()));
        let weight = |counts: &EndsByAge| densities(&lhd.edges, counts)[2];
        assert!(weight(&lhd.counts[0]) < weight(&lhd.counts[1]));
    }
}
