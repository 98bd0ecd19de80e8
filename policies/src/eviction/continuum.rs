//! Pin a session's path while its tool nodes.
//!
//! Source: "Continuum: efficient and robust multi-turn LLM agent scheduling with KV cache time-to-live" (2025); details
//! ours. When a request's output calls a tool, its path is pinned for the time tau that maximises benefit * P(the tool returns
//! within tau) - cost(tau). P is what was seen of the tool's last 64 calls, an exponential as long as there were fewer than
//! 8 (with their mean, or 2.0 s, what the preview of the code pins). The benefit is the prefill of the whole path; the cost
//! of tau seconds is the share of the cache that the path takes of what the cache has recovered a second so far.
//!
//! A pin is a rank above all that is not pinned; within both it is LRU. The session's next request ends it.
//!
//! Cost: as `lru`, one visit to every node of the path, and a sort of 64 calls. Do not use it where requests call no tools:
//! it is then `lru`.

use std::collections::VecDeque;

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};
use rustc_hash::FxHashMap;

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "continuum",
    summary: "a path whose tool call is expected back in time is pinned; below the pins LRU",
    source: "Continuum, 2025 (KV cache time-to-live; details ours)",
    idea: "An agent that waits for a tool comes back soon: keep its path for as long as the chance of that, learned per \
           tool, is worth the room.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path; a sort of 64 calls per request",
    avoid_when: "requests call no tools",
    params: &[Param {
        name: "cold",
        default: "2s",
        domain: Domain::Duration,
        help: "mean time of a tool that was never seen to return",
    }],
    track: Track::Online,
    build: |context, params| {
        Box::new(Continuum::new(
            context.cache.capacity_blocks(),
            params.duration_us("cold") as f64 / 1e6,
        ))
    },
};

const CALLS_REMEMBERED: usize = 64;
const CALLS_TO_TRUST: usize = 8;
/// A cold exponential pins no longer than this many means: 99 of 100 calls are back by then.
const MOST_MEANS: f64 = 4.605_170_185_988_092;

/// A call that has not returned.
#[derive(Clone, Copy)]
struct Call {
    tool: u16,
    at_us: i64,
}

/// Until when whose pin holds a node.
#[derive(Clone, Copy)]
struct Pin {
    session: u64,
    until_us: i64,
}

struct Continuum {
    capacity_blocks: f64,
    cold_s: f64,
    first_us: Option<i64>,
    now_us: i64,
    recovered_s: f64,
    calls: FxHashMap<u64, Call>,
    returns_s: FxHashMap<u16, VecDeque<f64>>,
    present: Option<Pin>,
    pins: NodeTable<Pin>,
    ranked: Ranked<(bool, LruOrder)>,
    places: NodeTable<LruOrder>,
    /// Pinned leaves by when their pin ends.
    ends: Ranked<i64>,
}

impl Continuum {
    fn new(capacity_blocks: u64, cold_s: f64) -> Self {
        Self {
            capacity_blocks: capacity_blocks.max(1) as f64,
            cold_s,
            first_us: None,
            now_us: 0,
            recovered_s: 0.0,
            calls: FxHashMap::default(),
            returns_s: FxHashMap::default(),
            present: None,
            pins: NodeTable::new(),
            ranked: Ranked::new(),
            places: NodeTable::new(),
            ends: Ranked::new(),
        }
    }

    fn note_return(&mut self, session: u64) {
        if let Some(call) = self.calls.remove(&session) {
            let returns = self.returns_s.entry(call.tool).or_default();
            if returns.len() == CALLS_REMEMBERED {
                returns.pop_front();
            }
            returns.push_back((self.now_us - call.at_us) as f64 / 1e6);
        }
    }

    /// The pin that the request's path deserves.
    fn pin(&mut self, request: &RequestView<'_>, recovered_s: f64) -> Option<Pin> {
        let tool = request.tool?;
        let call = Call {
            tool,
            at_us: self.now_us,
        };
        self.calls.insert(request.session, call);
        let benefit_s = request.prefill.seconds + recovered_s;
        let elapsed_s = (self.now_us - self.first_us?) as f64 / 1e6;
        let share = request.path.len() as f64 / self.capacity_blocks;
        let cost_rate = if elapsed_s > 0.0 {
            share * self.recovered_s / elapsed_s
        } else {
            0.0
        };
        let tau_s = match self.returns_s.get(&tool) {
            Some(returns) if returns.len() >= CALLS_TO_TRUST => {
                best_of_seen(returns, benefit_s, cost_rate)
            }
            seen => best_of_exponential(mean(seen).unwrap_or(self.cold_s), benefit_s, cost_rate),
        };
        (tau_s > 0.0).then(|| Pin {
            session: request.session,
            until_us: self.now_us.saturating_add((tau_s * 1e6) as i64),
        })
    }

    fn end_pins(&mut self) {
        while let Some((until_us, id)) = self.ends.first_entry()
            && until_us < self.now_us
        {
            self.ends.remove(id);
            if let Some(&place) = self.places.get(id) {
                self.ranked.put(id, (false, place));
            }
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.ranked.remove(id);
        self.places.remove(id);
        self.ends.remove(id);
    }
}

/// The time, of those a tool was seen to take, with the best P * benefit - cost; 0 if none is worth it.
fn best_of_seen(returns_s: &VecDeque<f64>, benefit_s: f64, cost_rate: f64) -> f64 {
    let mut sorted: Vec<f64> = returns_s.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (mut best_s, mut best_worth) = (0.0, 0.0);
    for (back, &tau_s) in (1..).zip(&sorted) {
        let worth = f64::from(back) / sorted.len() as f64 * benefit_s - cost_rate * tau_s;
        if worth > best_worth {
            (best_s, best_worth) = (tau_s, worth);
        }
    }
    best_s
}

/// The same where the times are exponential: where the chance of a return in the next second is worth that second.
fn best_of_exponential(mean_s: f64, benefit_s: f64, cost_rate: f64) -> f64 {
    if mean_s <= 0.0 || benefit_s <= 0.0 {
        return 0.0;
    }
    let means = (benefit_s / (cost_rate * mean_s)).ln();
    mean_s * means.clamp(0.0, MOST_MEANS)
}

fn mean(values: Option<&VecDeque<f64>>) -> Option<f64> {
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

impl EvictionPolicy for Continuum {
    fn offer(&mut self, leaf: &Candidate) {
        if self.pins.get(leaf.id).is_none()
            && let Some(pin) = self.present
        {
            self.pins.put(leaf.id, pin);
        }
        let until_us = self.pins.get(leaf.id).map_or(i64::MIN, |pin| pin.until_us);
        let pinned = until_us >= self.now_us;
        self.take_off(leaf.id);
        self.places.put(leaf.id, lru_order(leaf));
        self.ranked.put(leaf.id, (pinned, lru_order(leaf)));
        if pinned {
            self.ends.put(leaf.id, until_us);
        }
    }

    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.take_off(id);
    }

    fn victim(&mut self) -> Option<Victim> {
        self.ranked.first().map(Victim::node)
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.take_off(evicted.id);
        if whole {
            self.pins.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.pins.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.pins.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.now_us = request.arrival_us;
        self.first_us.get_or_insert(request.arrival_us);
        self.note_return(request.session);
        let recovered_s: f64 = nodes.iter().map(|node| node.recompute.seconds).sum();
        self.present = self.pin(request, recovered_s);
        self.recovered_s += recovered_s;
        for node in nodes {
            let others = self.pins.remove(node.id);
            let others = others.filter(|pin| pin.session != request.session);
            let longest = others
                .into_iter()
                .chain(self.present)
                .max_by_key(|pin| pin.until_us);
            if let Some(pin) = longest {
                self.pins.put(node.id, pin);
            }
        }
        self.end_pins();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ask, assert_is_lru, victims};

    #[test]
    fn a_path_that_waits_for_its_tool_stays() {
        let paths = [
            ask("a").session(1, 0).tool(1).at_s(0.0),
            ask("b").session(2, 0).at_s(1.0),
            ask("c").session(3, 0).at_s(2.0),
            ask("d").session(4, 0).at_s(30.0),
        ];
        // A cold tool is pinned for at most 4.6 * 2 s: "a" is over at 30 s.
        assert_eq!(victims("continuum", 2, &paths)[2..], ["b", "a"]);
        assert_eq!(victims("continuum(cold=20s)", 2, &paths)[2..], ["b", "c"]);
    }

    #[test]
    fn the_sessions_return_ends_the_pin() {
        let paths = [
            ask("a").session(1, 0).tool(1).at_s(0.0),
            ask("a").session(1, 1).at_s(0.1),
            ask("b").session(2, 0).at_s(0.2),
            ask("c").session(3, 0).at_s(0.3),
        ];
        assert_eq!(victims("continuum", 2, &paths)[3], "a");
    }

    #[test]
    fn when_all_are_pinned_the_oldest_goes() {
        let paths = [
            ask("a").session(1, 0).tool(1),
            ask("b").session(2, 0).tool(1),
            ask("c").session(3, 0).tool(1),
        ];
        assert_eq!(victims("continuum", 2, &paths)[2], "a");
    }

    #[test]
    fn the_time_is_where_waiting_longer_is_not_worth_it() {
        let seen: VecDeque<f64> = [1.0, 2.0, 3.0, 100.0].into();
        // A quarter of 8 s is worth 2 s; waiting for the last costs 97 s times the rate.
        assert_eq!(best_of_seen(&seen, 8.0, 0.1), 3.0);
        assert_eq!(best_of_seen(&seen, 8.0, 0.01), 100.0);
        assert_eq!(best_of_seen(&seen, 8.0, 10.0), 0.0);
        // d/dtau of 8(1 - exp(-tau/2)) is 4 exp(-tau/2), which is 1 at tau = 2 ln 4.
        assert!((best_of_exponential(2.0, 8.0, 1.0) - 2.0 * 4f64.ln()).abs() < 1e-12);
        assert_eq!(best_of_exponential(2.0, 8.0, 10.0), 0.0);
        assert_eq!(best_of_exponential(2.0, 8.0, 0.0), 2.0 * MOST_MEANS);
    }

    #[test]
    fn without_tools_it_is_lru() {
        assert_is_lru("continuum");
    }
}
