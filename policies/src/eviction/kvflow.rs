//! Steps to execution.
//!
//! Source: Pan et al., "KVFlow: efficient prefix caching for accelerating LLM-based multi-agent workflows", NeurIPS 2025.
//! A workflow's agents declare in how many steps they node again. A node is as near as the nearest of the agents that went
//! through it; the farthest goes first, before it whatever belongs to no agent that declared anything. Ties go by last use.
//!
//! The workflow is the session, the agent its requests of one kind, the step the session's: an agent that declared at step
//! 4 to node again in 3 is 2 steps away when the session is at 5. A node remembers the last 16 agents that went through it.
//!
//! Reads declared hints; on a trace without any it is `lru`. Cost: as `lru`, one visit to every node of the path, and a new
//! place for every leaf of the session. Do not use it where agents do not know when they node again.

use std::cmp::Reverse;

use policy_api::{Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Victim, WithdrawReason};
use rustc_hash::FxHashMap;

use crate::entry::{EvictionEntry, Track};
use crate::parts::by_key::{LruOrder, lru_order};
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "kvflow",
    summary: "the leaf whose agents declared to node again in the most steps goes, then by last use",
    source: "Pan et al., KVFlow, NeurIPS 2025",
    idea: "A workflow knows which agent comes next: keep what nodes soonest. Reads the hint steps_to_next; without hints it \
           is lru.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path, a new place for every leaf of the session",
    avoid_when: "agents do not know when they node again",
    params: &[],
    track: Track::Declared,
    build: |_, _| Box::new(KvFlow::default()),
};

/// Session and kind.
type Agent = (u64, u16);

/// More agents than this are not remembered of a node.
const MOST_AGENTS: usize = 16;

#[derive(Default)]
struct KvFlow {
    /// The step at which an agent nodes again.
    due: FxHashMap<Agent, u32>,
    /// The step a session is at.
    steps: FxHashMap<u64, u32>,
    /// The agents that went through a node, the latest last.
    agents: NodeTable<Vec<Agent>>,
    ranked: Ranked<(Reverse<u32>, LruOrder)>,
    places: NodeTable<LruOrder>,
    /// Leaves that agents of a session went through. One that is gone, or used by others since, may still be listed.
    leaves_of: FxHashMap<u64, Vec<NodeId>>,
    present: Option<Agent>,
}

impl KvFlow {
    /// Steps until the nearest of the node's agents nodes; the most there are if none is known.
    fn distance(&self, id: NodeId) -> u32 {
        let agents = self.agents.get(id).map_or(&[][..], Vec::as_slice);
        let distance = |agent: &Agent| {
            let due = self.due.get(agent)?;
            Some(due.saturating_sub(*self.steps.get(&agent.0)?))
        };
        agents.iter().filter_map(distance).min().unwrap_or(u32::MAX)
    }

    fn rank(&mut self, id: NodeId) {
        if let Some(&place) = self.places.get(id) {
            let distance = self.distance(id);
            self.ranked.put(id, (Reverse(distance), place));
        }
    }

    fn take_off(&mut self, id: NodeId) {
        self.ranked.remove(id);
        self.places.remove(id);
    }

    fn went_through(&mut self, id: NodeId, agent: Agent) {
        let agents = self.agents.entry(id, Vec::new);
        agents.retain(|other| *other != agent);
        if agents.len() == MOST_AGENTS {
            agents.remove(0);
        }
        agents.push(agent);
    }

    /// All leaves of a session are nearer by the steps it made.
    fn rank_leaves_of(&mut self, session: u64) {
        let mut leaves = self.leaves_of.remove(&session).unwrap_or_default();
        leaves.retain(|id| {
            self.places.get(*id).is_some()
                && self
                    .agents
                    .get(*id)
                    .is_some_and(|agents| agents.iter().any(|agent| agent.0 == session))
        });
        leaves.sort_unstable();
        leaves.dedup();
        for &id in &leaves {
            self.rank(id);
        }
        self.leaves_of.insert(session, leaves);
    }
}

impl EvictionPolicy for KvFlow {
    fn offer(&mut self, leaf: &Candidate) {
        if self.agents.get(leaf.id).is_none()
            && let Some(agent) = self.present
        {
            self.went_through(leaf.id, agent);
        }
        self.places.put(leaf.id, lru_order(leaf));
        self.rank(leaf.id);
        for agent in self.agents.get(leaf.id).into_iter().flatten() {
            self.leaves_of.entry(agent.0).or_default().push(leaf.id);
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
            self.agents.remove(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.agents.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.agents.remove(head);
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        let agent = (request.session, request.kind);
        let steps = request.hints.and_then(|hints| hints.steps_to_next);
        self.steps.insert(request.session, request.step);
        match steps {
            Some(steps) => self.due.insert(agent, request.step.saturating_add(steps)),
            None => self.due.remove(&agent),
        };
        self.present = Some(agent);
        for node in nodes {
            self.went_through(node.id, agent);
        }
        self.rank_leaves_of(request.session);
    }
}

#[cfg(test)]
mod tests {
    use policy_api::Hints;

    use crate::testing::{Ask, ask, assert_is_lru, victims};

    fn agent(path: &str, kind: u16, step: u32, steps_to_next: Option<u32>) -> Ask {
        ask(path).session(1, step).kind(kind).hints(Hints {
            steps_to_next,
            ..Hints::default()
        })
    }

    #[test]
    fn the_farthest_goes_and_the_unknown_before_it() {
        let paths = [
            agent("a", 1, 0, Some(2)),
            agent("b", 2, 1, Some(9)),
            agent("c", 3, 2, None),
            agent("d", 4, 3, Some(3)),
            agent("e", 5, 4, Some(1)),
        ];
        assert_eq!(victims("kvflow", 3, &paths)[3..], ["c", "b"]);
    }

    #[test]
    fn the_nearest_agent_of_a_shared_prefix_counts() {
        // At step 3 agent 2 is 6 steps away and agent 3 three, so "b" goes and then "z"; "x" stays for agent 1.
        let paths = [
            agent("xb", 2, 0, Some(9)),
            agent("x", 1, 1, Some(3)),
            agent("z", 3, 2, Some(4)),
            agent("vw", 4, 3, Some(1)),
        ];
        assert_eq!(victims("kvflow", 3, &paths)[3], "bz");
    }

    #[test]
    fn distances_shrink_as_the_session_steps() {
        // At step 3 agent 1 of session 1 has one step to go, that of session 2 still three, though it declared fewer.
        let paths = [
            agent("a", 1, 0, Some(4)),
            agent("b", 1, 0, Some(3)).session(2, 0),
            agent("c", 2, 3, Some(1)),
        ];
        assert_eq!(victims("kvflow", 2, &paths)[2], "b");
    }

    #[test]
    fn without_hints_it_is_lru() {
        assert_is_lru("kvflow");
    }
}
