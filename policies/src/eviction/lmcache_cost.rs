//! What LMCache keeps: dear per byte, and used lately.
//!
//! Source: LMCache (its cost-aware policy). Of every request that goes through a run, the tokens from the run's start to
//! the request's end are what a miss there would cost; an average that gives the latest request a weight of 0.2, over the
//! run's bytes and over 1 + age / 60 s, is the run's worth. The run worth least goes.
//!
//! Ages are in buckets, each counted as its lower edge; an edge is where the worth has faded by another quarter of an
//! octave, so it is at most 19% too high; within that the order is exact over all leaves.
//!
//! Cost: as `lru`, one visit to every run of the path, and a move per bucket of age, of which the first minute has four.
//! Do not use it where long runs are worth their bytes: a run's own length is in the divisor only.

use policy_api::{Candidate, EvictionPolicy, RequestView, RunId, Victim, Why};

use crate::entry::{EvictionEntry, Track};
use crate::parts::aging::Aging;
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::per_request::PerRequest;
use crate::parts::run_table::RunTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lmcache-cost",
    summary: "average tokens behind the run's start per byte, over 1 + age / 60 s; the smallest goes",
    source: "LMCache (cost-aware policy)",
    idea: "A miss costs everything from the run's start on; per byte, and fading with age. Ages count in buckets of \
           a quarter octave of worth, exact over all leaves within them.",
    cost: "O(log leaves) per offer and age bucket, amortised; one visit to every run of the path",
    avoid_when: "long runs are worth their bytes",
    params: &[],
    track: Track::Online,
    build: |setup, _| Box::new(LmCacheCost::new(setup.block_tokens)),
};

/// Weight of the latest request in the average.
const LATEST: f64 = 0.2;
const FADE_US: f64 = 60e6;
/// Buckets of age: as many as fade the worth by 20 octaves, which takes two years.
const BUCKETS: u32 = 80;
const BUCKETS_PER_OCTAVE: f64 = 4.0;

struct LmCacheCost {
    block_tokens: u32,
    present_tokens: f64,
    arrivals_us: PerRequest<i64>,
    /// Average tokens of the requests through a run. The run's start is taken off when it is ranked.
    tokens: RunTable<f64>,
    leaves: Aging<LruOrder>,
}

impl LmCacheCost {
    fn new(block_tokens: u32) -> Self {
        let edges: Vec<_> = (0..BUCKETS).map(edge_us).collect();
        let mut leaves = Aging::new(edges.clone());
        leaves.weigh(0, |bucket| fade(edges[bucket]));
        Self {
            block_tokens,
            present_tokens: 0.0,
            arrivals_us: PerRequest::new(),
            tokens: RunTable::new(),
            leaves,
        }
    }
}

fn fade(age_us: i64) -> f64 {
    1.0 / (1.0 + age_us as f64 / FADE_US)
}

/// The age at which a bucket begins.
fn edge_us(bucket: u32) -> i64 {
    let faded = (f64::from(bucket) / BUCKETS_PER_OCTAVE).exp2();
    (FADE_US * (faded - 1.0)).round() as i64
}

impl EvictionPolicy for LmCacheCost {
    fn offer(&mut self, leaf: &Candidate) {
        let present = self.present_tokens;
        let tokens = *self.tokens.entry(leaf.id, || present);
        let start = f64::from(leaf.depth_blocks) * f64::from(self.block_tokens);
        let score = (tokens - start).max(0.0) / leaf.bytes as f64;
        let since = self.arrivals_us.at(leaf.last_used);
        self.leaves.offer(leaf.id, 0, since, score, lru_order(leaf));
    }

    fn withdraw(&mut self, id: RunId, _: Why) {
        self.leaves.withdraw(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::run)
    }

    fn evicted(&mut self, gone: &Candidate, whole: bool) {
        self.leaves.withdraw(gone.id);
        if whole {
            self.tokens.remove(gone.id);
        }
    }

    fn split(&mut self, head: RunId, tail: RunId) {
        self.tokens.split(head, tail);
    }

    fn merge(&mut self, head: RunId, _: RunId, _: u32) {
        self.tokens.remove(head);
    }

    fn wants_runs(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, runs: &[Candidate]) {
        self.arrivals_us.note(request.index, request.arrival_us);
        self.leaves.advance(request.arrival_us);
        self.present_tokens = f64::from(request.prompt_tokens);
        for run in runs {
            let present = self.present_tokens;
            let tokens = self.tokens.entry(run.id, || present);
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
                ask("a").at_s(0.0),
                ask("bc").at_s(60.0 * minutes),
                ask("d").at_s(60.0 * minutes),
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
