//! Pin a session's path while its tool runs.
//!
//! When a request's output calls a tool, its path is pinned for the time tau with the best
//!
//! ```text
//!   benefit * P(the tool returns within tau) - cost(tau)
//!
//!   P         what was seen of the tool's last 64 calls; an exponential while there were fewer than 8, with their mean, or
//!             `cold` (2 s, which the preview of the authors' code pins)
//!   benefit   the prefill of the whole path
//!   cost      the path's share of the cache, of what the cache has saved per second so far, for tau seconds
//! ```
//!
//! A pin is a rank above all that is not pinned; within both it is LRU. The session's next request ends it. Where requests call
//! no tools it is `lru`.

use std::collections::VecDeque;

use policy_api::{Candidate, NodeId, Ranked, RequestView, WithdrawReason};
use rustc_hash::FxHashMap;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::node_table::NodeTable;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "continuum",
    summary: "pins a path whose tool call is expected back in time; below the pins LRU",
    source: "Continuum: efficient and robust multi-turn LLM agent scheduling with KV cache time-to-live, 2025 (details ours)",
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
    build: BuildEviction::Alone(|context, params| {
        Box::new(Keyed::new(Continuum {
            capacity_blocks: context.cache.capacity_blocks().max(1) as f64,
            cold_seconds: params.duration_us("cold") as f64 / 1e6,
            ..Continuum::default()
        }))
    }),
};

const CALLS_REMEMBERED: usize = 64;
const CALLS_TO_TRUST: usize = 8;
/// A cold exponential pins no longer than this many means: 99 of 100 calls are back by then.
const MOST_MEANS: f64 = 4.605_170_185_988_092;

/// A call that has not returned.
#[derive(Clone, Copy)]
struct ToolCall {
    tool: u16,
    at_us: i64,
}

/// Until when whose pin holds a node.
#[derive(Clone, Copy)]
struct SessionPin {
    session: u64,
    until_us: i64,
}

#[derive(Default)]
struct Continuum {
    capacity_blocks: f64,
    cold_seconds: f64,
    first_us: Option<i64>,
    now_us: i64,
    saved_seconds: f64,
    calls: FxHashMap<u64, ToolCall>,
    returns_seconds: FxHashMap<u16, VecDeque<f64>>,
    present: Option<SessionPin>,
    places: NodeTable<LruOrder>,
    /// Pinned leaves by when their pin ends.
    ends: Ranked<i64>,
}

impl Continuum {
    /// Seconds since then on the trace's clock.
    fn seconds_since(&self, then_us: i64) -> f64 {
        self.now_us.saturating_sub(then_us) as f64 / 1e6
    }

    fn note_return(&mut self, session: u64) {
        if let Some(call) = self.calls.remove(&session) {
            let took_seconds = self.seconds_since(call.at_us);
            let returns = self.returns_seconds.entry(call.tool).or_default();
            if returns.len() == CALLS_REMEMBERED {
                returns.pop_front();
            }
            returns.push_back(took_seconds);
        }
    }

    /// The pin that the request's path deserves.
    fn pin(&mut self, request: &RequestView<'_>, saved_seconds: f64) -> Option<SessionPin> {
        let tool = request.tool?;
        let call = ToolCall {
            tool,
            at_us: self.now_us,
        };
        self.calls.insert(request.session, call);
        let benefit_seconds = request.prefill.seconds + saved_seconds;
        let elapsed_seconds = self.seconds_since(self.first_us?);
        let share = request.path.len() as f64 / self.capacity_blocks;
        let cost_rate = if elapsed_seconds > 0.0 {
            share * self.saved_seconds / elapsed_seconds
        } else {
            0.0
        };
        let tau_seconds = match self.returns_seconds.get(&tool) {
            Some(returns) if returns.len() >= CALLS_TO_TRUST => {
                best_of_seen(returns, benefit_seconds, cost_rate)
            }
            seen => {
                let mean_seconds = mean(seen).unwrap_or(self.cold_seconds);
                best_of_exponential(mean_seconds, benefit_seconds, cost_rate)
            }
        };
        (tau_seconds > 0.0).then(|| SessionPin {
            session: request.session,
            until_us: self.now_us.saturating_add((tau_seconds * 1e6) as i64),
        })
    }

    fn end_pins(&mut self, order: &mut Ranked<(bool, LruOrder)>) {
        while let Some((until_us, id)) = self.ends.first_entry()
            && until_us < self.now_us
        {
            self.ends.remove(id);
            if let Some(&place) = self.places.get(id) {
                order.put(id, (false, place));
            }
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.places.remove(id);
        self.ends.remove(id);
    }
}

/// The time, of those a tool was seen to take, with the best P * benefit - cost; 0 if none is worth it.
fn best_of_seen(returns_seconds: &VecDeque<f64>, benefit_seconds: f64, cost_rate: f64) -> f64 {
    let mut sorted: Vec<f64> = returns_seconds.iter().copied().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (mut best_seconds, mut best_worth) = (0.0, 0.0);
    for (back, &tau_seconds) in (1..).zip(&sorted) {
        let chance = f64::from(back) / sorted.len() as f64;
        let worth = chance * benefit_seconds - cost_rate * tau_seconds;
        if worth > best_worth {
            (best_seconds, best_worth) = (tau_seconds, worth);
        }
    }
    best_seconds
}

/// The same where the times are exponential: where the chance of a return in the next second is worth that second.
fn best_of_exponential(mean_seconds: f64, benefit_seconds: f64, cost_rate: f64) -> f64 {
    if mean_seconds <= 0.0 || benefit_seconds <= 0.0 {
        return 0.0;
    }
    let means = (benefit_seconds / (cost_rate * mean_seconds)).ln();
    mean_seconds * means.clamp(0.0, MOST_MEANS)
}

fn mean(values: Option<&VecDeque<f64>>) -> Option<f64> {
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

impl Rule for Continuum {
    type Order = Ranked<(bool, LruOrder)>;
    type State = SessionPin;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (bool, LruOrder) {
        if let Some(pin) = self.present {
            nodes.states.entry(leaf.id, || pin);
        }
        let pin = nodes.states.get(leaf.id);
        let until_us = pin.map_or(i64::MIN, |pin| pin.until_us);
        let is_pinned = until_us >= self.now_us;
        self.take_off(leaf.id);
        self.places.put(leaf.id, lru_order(leaf));
        if is_pinned {
            self.ends.put(leaf.id, until_us);
        }
        (is_pinned, lru_order(leaf))
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        self.now_us = request.arrival_us;
        self.first_us.get_or_insert(request.arrival_us);
        self.note_return(request.session);
        let saved_seconds: f64 = path.iter().map(|node| node.recompute.seconds).sum();
        self.present = self.pin(request, saved_seconds);
        self.saved_seconds += saved_seconds;
        for node in path {
            let others = nodes.states.remove(node.id);
            let others = others.filter(|pin| pin.session != request.session);
            let longest = others
                .into_iter()
                .chain(self.present)
                .max_by_key(|pin| pin.until_us);
            if let Some(pin) = longest {
                nodes.states.put(node.id, pin);
            }
        }
        self.end_pins(&mut nodes.order);
    }

    fn withdrawn(&mut self, id: NodeId, _: WithdrawReason, _: &mut Nodes<Self>) {
        self.take_off(id);
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        self.take_off(evicted.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ask, assert_is_lru, victims};

    #[test]
    fn a_path_that_waits_for_its_tool_stays() {
        let paths = [
            ask("a").session(1, 0).tool(1).at_seconds(0.0),
            ask("b").session(2, 0).at_seconds(1.0),
            ask("c").session(3, 0).at_seconds(2.0),
            ask("d").session(4, 0).at_seconds(30.0),
        ];
        // A cold tool is pinned for at most 4.6 * 2 s: "a" is over at 30 s.
        assert_eq!(victims("continuum", 2, &paths)[2..], ["b", "a"]);
        assert_eq!(victims("continuum(cold=20s)", 2, &paths)[2..], ["b", "c"]);
    }

    #[test]
    fn the_sessions_return_ends_the_pin() {
        let paths = [
            ask("a").session(1, 0).tool(1).at_seconds(0.0),
            ask("a").session(1, 1).at_seconds(0.1),
            ask("b").session(2, 0).at_seconds(0.2),
            ask("c").session(3, 0).at_seconds(0.3),
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
