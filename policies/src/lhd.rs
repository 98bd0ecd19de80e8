//! LHD: least hit density.
//!
//! Source: Beckmann, Chen and Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI 2018. From the ages at
//! which runs of a class were used or evicted follows the hit density of a run of some age: the chance that it will be
//! used over the time it is still expected to take up room. The leaf of the least density goes. As a run of n blocks hits
//! n times and takes n times the room, its length cancels out.
//!
//! Ages are in requests since the last use, in buckets of half an octave; classes are the uses since admission (1, 2, 3,
//! more). Every 1,000 requests the densities are computed anew and what was counted loses a tenth. One pretended use after
//! a life as long as the age itself makes it LRU as long as nothing is known.
//!
//! Cost: as `lru`, one visit to every run of the path, and a move per bucket of age. The paper samples 64 leaves; this looks
//! at all. Do not use it where age since the last use says little.

use policy_api::{Candidate, EvictionPolicy, RequestView, RunId, Victim, Why};

use crate::aging::{Aging, bucket_of, geometric_edges};
use crate::by_key::{LruOrder, lru_order};
use crate::registry::{EvictionEntry, Track};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lhd",
    summary: "the leaf of the least expected hits per block and request goes, learned by age",
    source: "Beckmann, Chen and Cidon, LHD, NSDI 2018",
    idea: "From the ages at which runs were used or evicted follows what a run of some age will still bring for the room \
           it takes. Exact over all leaves within age buckets of half an octave, where the paper samples 64.",
    cost: "O(log leaves) per offer and age bucket, amortised; one visit to every run of the path",
    avoid_when: "age since the last use says little",
    params: &[],
    track: Track::Online,
    build: |_, _| Box::new(Lhd::new()),
};

const CLASSES: usize = 4;
const BUCKETS: usize = 60;
const REFIT_REQUESTS: u32 = 1_000;
const KEPT_AT_REFIT: f64 = 0.9;

/// Uses and evictions by age.
#[derive(Clone)]
struct Counts {
    used: [f64; BUCKETS],
    gone: [f64; BUCKETS],
}

struct Lhd {
    edges: Vec<i64>,
    counts: Vec<Counts>,
    leaves: Aging<LruOrder>,
    now: i64,
    requests: u32,
}

impl Lhd {
    fn new() -> Self {
        let edges = geometric_edges(1, 2, BUCKETS);
        let none = Counts {
            used: [0.0; BUCKETS],
            gone: [0.0; BUCKETS],
        };
        let mut lhd = Self {
            leaves: Aging::new(edges.clone()),
            edges,
            counts: vec![none; CLASSES],
            now: 0,
            requests: 0,
        };
        lhd.refit();
        lhd
    }

    fn refit(&mut self) {
        for (class, counts) in (0..).zip(&mut self.counts) {
            let densities = densities(&self.edges, counts);
            self.leaves.weigh(class, |bucket| densities[bucket]);
            for count in counts.used.iter_mut().chain(&mut counts.gone) {
                *count *= KEPT_AT_REFIT;
            }
        }
    }

    fn place(&self, run: &Candidate) -> (usize, usize) {
        let age = self.now - i64::from(run.last_used);
        (class_of(run), bucket_of(&self.edges, age))
    }
}

fn class_of(run: &Candidate) -> usize {
    (run.uses.max(1) as usize - 1).min(CLASSES - 1)
}

/// The hit density at every age: uses to come over room to be taken, of all runs that got that old.
fn densities(edges: &[i64], counts: &Counts) -> [f64; BUCKETS] {
    let mut densities = [0.0; BUCKETS];
    let (mut used, mut ended, mut room) = (0.0, 0.0, 0.0);
    for bucket in (0..BUCKETS).rev() {
        let age = edges[bucket] as f64;
        let width = edges.get(bucket + 1).map_or(0.0, |next| *next as f64 - age);
        used += counts.used[bucket];
        ended += counts.used[bucket] + counts.gone[bucket];
        room += ended * width;
        densities[bucket] = (used + 1.0) / (room + age + 1.0);
    }
    densities
}

impl EvictionPolicy for Lhd {
    fn offer(&mut self, leaf: &Candidate) {
        let class = class_of(leaf) as u32;
        let since = i64::from(leaf.last_used);
        self.leaves
            .offer(leaf.id, class, since, 1.0, lru_order(leaf));
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.leaves.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, _: bool) {
        let (class, bucket) = self.place(gone);
        self.counts[class].gone[bucket] += 1.0;
        self.leaves.withdraw(gone.id);
    }

    fn wants_runs(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.now = i64::from(request.index);
        self.leaves.advance(self.now);
        for run in runs {
            let (class, bucket) = self.place(run);
            self.counts[class].used[bucket] += 1.0;
        }
        self.requests += 1;
        if self.requests.is_multiple_of(REFIT_REQUESTS) {
            self.refit();
        }
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
        // Ages 0, 1, 2, 3, 4 and so on. Ten runs lived to age 2: eight were used there, two went there.
        let edges = geometric_edges(1, 2, BUCKETS);
        let mut counts = Counts {
            used: [0.0; BUCKETS],
            gone: [0.0; BUCKETS],
        };
        counts.used[2] = 8.0;
        counts.gone[2] = 2.0;
        let densities = densities(&edges, &counts);
        let expected = [9.0 / 31.0, 9.0 / 22.0, 9.0 / 13.0, 1.0 / 4.0, 1.0 / 5.0];
        for (bucket, expected) in expected.into_iter().enumerate() {
            assert!((densities[bucket] - expected).abs() < 1e-12, "{bucket}");
        }
    }

    #[test]
    fn a_class_that_is_never_used_goes_before_one_that_is() {
        let mut lhd = Lhd::new();
        lhd.counts[0].gone[3] = 1000.0;
        lhd.counts[1].used[9] = 1000.0;
        lhd.refit();
        let weight = |counts: &Counts| densities(&lhd.edges, counts)[2];
        assert!(weight(&lhd.counts[0]) < weight(&lhd.counts[1]));
    }
}
