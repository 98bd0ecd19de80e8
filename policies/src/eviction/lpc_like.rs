//! Chance that the conversation goes on, with its last use.
//!
//! The paper predicts from the prompt's text whether a conversation goes on. A block trace has no text, so this learns the chance
//! from turn, kind and lengths, by a logistic regression trained online: a session that comes back within the patience has
//! gone on, one that has been silent that long has not. Hence "-like".
//!
//! A leaf is worth P of the request that used it last, halved for every half-life since. All leaves fade alike, so
//! log2 P + last use / half-life orders them once for all.

use std::collections::VecDeque;

use policy_api::{Candidate, Ranked, RequestIndex, RequestView, Score};
use rustc_hash::FxHashMap;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::per_request::PerRequest;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "lpc-like",
    summary: "evicts the smallest learned chance that the conversation goes on, halved with every half-life",
    source: "Learned Prefix Caching, NeurIPS 2025 (there from the prompt's text; here from turn, kind and lengths)",
    idea: "Some turns are the last of their conversation, and one can tell: learn it online and let it correct recency.",
    cost: "O(log leaves) per offer, amortised; one step of a regression per request",
    avoid_when: "sessions are one request long, or all alike",
    params: &[
        Param {
            name: "half-life",
            default: "10m",
            domain: Domain::Duration,
            help: "time after which a leaf is worth half as much",
        },
        Param {
            name: "patience",
            default: "10m",
            domain: Domain::Duration,
            help: "silence after which a conversation is taken to be over",
        },
    ],
    track: Track::Online,
    build: BuildEviction::Alone(|_, params| {
        Box::new(Keyed::new(LpcLike::new(
            params.duration_us("half-life"),
            params.duration_us("patience"),
        )))
    }),
};

const KINDS: usize = 12;
const FEATURES: usize = 4 + KINDS;
const LEARNING_RATE: f64 = 0.05;
/// No chance is taken to be smaller: it would outweigh any age.
const LEAST_CHANCE: f64 = 1e-4;

type Features = [f64; FEATURES];

/// A request whose session has not come back yet.
struct Open {
    index: RequestIndex,
    features: Features,
}

struct LpcLike {
    half_life_us: f64,
    patience_us: i64,
    weights: Features,
    open: FxHashMap<u64, Open>,
    /// Session, request and arrival, the oldest first.
    waiting: VecDeque<(u64, RequestIndex, i64)>,
    /// What a leaf that a request used last is worth: log2 P + arrival / half-life.
    worth: PerRequest<f64>,
}

impl LpcLike {
    fn new(half_life_us: i64, patience_us: i64) -> Self {
        Self {
            half_life_us: half_life_us.max(1) as f64,
            patience_us,
            weights: [0.0; FEATURES],
            open: FxHashMap::default(),
            waiting: VecDeque::new(),
            worth: PerRequest::new(),
        }
    }

    fn chance(&self, features: &Features) -> f64 {
        let sum: f64 = self.weights.iter().zip(features).map(|(w, x)| w * x).sum();
        1.0 / (1.0 + (-sum).exp())
    }

    fn learn(&mut self, features: &Features, went_on: f64) {
        let error = went_on - self.chance(features);
        for (weight, value) in self.weights.iter_mut().zip(features) {
            *weight += LEARNING_RATE * error * value;
        }
    }

    fn give_up_silent_ones(&mut self, now_us: i64) {
        while let Some(&(session, index, at_us)) = self.waiting.front()
            && now_us.saturating_sub(at_us) > self.patience_us
        {
            self.waiting.pop_front();
            let open = self.open.get(&session);
            if open.is_some_and(|open| open.index == index)
                && let Some(open) = self.open.remove(&session)
            {
                self.learn(&open.features, 0.0);
            }
        }
    }
}

/// One, turn, prompt and output on scales of about one, and the kind.
fn features(request: &RequestView<'_>) -> Features {
    let log = |value: u32| f64::from(value).ln_1p() / 8.0;
    let mut features = [0.0; FEATURES];
    features[0] = 1.0;
    features[1] = log(request.step);
    features[2] = log(request.prompt_tokens);
    features[3] = log(request.output_tokens);
    features[4 + usize::from(request.kind).min(KINDS - 1)] = 1.0;
    features
}

impl Rule for LpcLike {
    type Order = Ranked<(Score, LruOrder)>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> (Score, LruOrder) {
        (Score(self.worth.at(leaf.last_request)), lru_order(leaf))
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], _: &mut Nodes<Self>) {
        self.give_up_silent_ones(request.arrival_us);
        if let Some(open) = self.open.remove(&request.session) {
            self.learn(&open.features, 1.0);
        }
        let features = features(request);
        let chance = self.chance(&features).max(LEAST_CHANCE);
        let worth = chance.log2() + request.arrival_us as f64 / self.half_life_us;
        self.worth.note(request.index, worth);
        let open = Open {
            index: request.index,
            features,
        };
        self.open.insert(request.session, open);
        self.waiting
            .push_back((request.session, request.index, request.arrival_us));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, ask, asks, victims};

    #[test]
    fn as_long_as_nothing_is_known_it_is_lru() {
        let paths: Vec<Ask> = asks(&["ab", "c", "abd", "e", "fg", "ab", "h"])
            .into_iter()
            .enumerate()
            .map(|(at, ask)| ask.session(at as u64, 0))
            .collect();
        assert_eq!(victims("lpc-like", 4, &paths), victims("lru", 4, &paths));
    }

    #[test]
    fn a_kind_that_never_goes_on_goes_first() {
        // Kind 1 always has a second turn, kind 2 never: after many of both the older "a" of kind 1 stays.
        let mut paths = Vec::new();
        for round in 0..400u32 {
            let at_s = f64::from(round) * 10.0;
            let (chat, single) = (u64::from(2 * round), u64::from(2 * round + 1));
            paths.push(ask("").kind(1).session(chat, 0).at_seconds(at_s));
            paths.push(ask("").kind(1).session(chat, 0).at_seconds(at_s + 1.0));
            paths.push(ask("").kind(2).session(single, 0).at_seconds(at_s + 2.0));
        }
        let later = |path: &str, kind, session, at_s| {
            ask(path).kind(kind).session(session, 0).at_seconds(at_s)
        };
        paths.extend([
            later("a", 1, 9001, 5000.0),
            later("b", 2, 9002, 5001.0),
            later("c", 1, 9003, 5002.0),
        ]);
        assert_eq!(victims("lpc-like", 2, &paths).pop().as_deref(), Some("b"));
        assert_eq!(victims("lru", 2, &paths).pop().as_deref(), Some("a"));
    }

    #[test]
    fn a_step_of_the_regression_goes_towards_the_label() {
        let mut policy = LpcLike::new(1, 1);
        let mut features = [0.0; FEATURES];
        features[0] = 1.0;
        policy.learn(&features, 1.0);
        assert_eq!(policy.weights[0], LEARNING_RATE * 0.5);
        for _ in 0..2000 {
            policy.learn(&features, 0.0);
        }
        assert!(policy.chance(&features) < 0.02);
    }
}
