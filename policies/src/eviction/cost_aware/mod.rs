//! What a leaf will save: p(reuse) * recompute seconds / GB.
//!
//! A node is worth the prefill that a hit on it would save, by the cost model in force, times the chance of that hit, for the memory
//! it takes. Recompute per GB is nearly flat (on the reference GPU 69 ms/GB for a prefix of 8,192 tokens, 53 for one of 512), so it
//! is p(reuse) that decides. Five estimators:
//!
//! ```text
//!   p           file       a leaf's p follows from
//!   recency     faded      the time since its last use
//!   frequency   faded      its uses, and the time since each
//!   kind        learned    how long leaves of its class waited for a use; its class (classes) is
//!                            the kind of the request that used it last
//!   session     learned      kind, step, whether that request called a tool, whether its session moved on
//!   hazard      learned      kind, depth of its end, continuations, whether that request went on from a leaf
//! ```
//!
//! How it was tuned and how it does: docs/cost-aware.md.

mod classes;
mod faded;
mod learned;
mod sessions;

use params::{Domain, Param, Params};
use policy_api::EvictionPolicy;

use self::classes::Classes;
use self::faded::Faded;
use self::learned::Learned;
use crate::entry::{BuildEviction, EvictionEntry, PolicyContext, Track};
use crate::parts::keyed::Keyed;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "cost-aware",
    summary: "evicts the smallest p(reuse) * recompute seconds / GB; p learned online",
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
    build: BuildEviction::Alone(build),
};

fn build(context: &PolicyContext, params: &Params) -> Box<dyn EvictionPolicy> {
    let half_life_us = params.duration_us("half-life");
    let learned = |classes| Box::new(Learned::policy(context, classes, params));
    match params.text("p") {
        "recency" => Box::new(Keyed::new(Faded::new(half_life_us, false))),
        "frequency" => Box::new(Keyed::new(Faded::new(half_life_us, true))),
        "kind" => learned(Classes::Kind),
        "session" => learned(Classes::Session),
        _ => learned(Classes::Hazard),
    }
}

#[cfg(test)]
mod tests {
    use policy_api::{Candidate, NodeId, Victim, WithdrawReason, Work};

    use super::*;
    use crate::testing::{Ask, ask, asks, context, leaf, victims};

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
            .map(|(at, ask)| ask.session(at as u64, 0).at_seconds(2f64.powi(at as i32)))
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
            paths.push(first(ask(&again).session(session, 0).at_seconds(at_s), 1));
            paths.push(first(
                ask(&once).session(1000 + session, 0).at_seconds(at_s + 1.0),
                2,
            ));
            paths.push(first(
                ask(&again).session(session, 1).at_seconds(at_s + 5.0),
                1,
            ));
        }
        paths.push(first(ask("a").session(9001, 0).at_seconds(3001.0), 1));
        paths.push(first(ask("b").session(9002, 0).at_seconds(3002.0), 2));
        paths.push(first(ask("c").session(9003, 0).at_seconds(3003.0), 1));
        paths.push(first(ask("d").session(9004, 0).at_seconds(3003.5), 1));
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
}
