//! Steps to execution. On a trace without hints it is `lru`.
//!
//! The workflow is the session and the agent its requests of one kind. An agent that declared at step 4 to run again in 3 is 2 steps
//! away when the session is at step 5. A node remembers the last 16 agents that used it.

use std::cmp::Reverse;

use policy_api::{Candidate, NodeId, Ranked, RequestView, WithdrawReason};
use rustc_hash::FxHashMap;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::node_table::NodeTable;

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "kvflow",
    summary: "evicts the leaf whose agents declared to run again in the most steps; among equals by last use",
    source: "Pan et al., KVFlow: efficient prefix caching for accelerating LLM-based multi-agent workflows, NeurIPS 2025",
    idea: "A workflow knows which agent comes next: keep what runs soonest. A node is as near as the nearest agent that used it; \
           what belongs to no agent that declared anything is evicted first. Reads the hint steps_to_next.",
    cost: "O(log leaves) per offer, amortised; one visit to every node of the path, a new place for every leaf of the session",
    avoid_when: "agents do not know when they run again",
    params: &[],
    track: Track::Declared,
    build: BuildEviction::Alone(|_, _| Box::new(Keyed::new(KvFlow::default()))),
};

/// Session and kind.
type Agent = (u64, u16);

/// More agents than this are not remembered of a node.
const MOST_AGENTS: usize = 16;

#[derive(Default)]
struct KvFlow {
    /// The step at which an agent runs again.
    due: FxHashMap<Agent, u32>,
    /// The step a session is at.
    steps: FxHashMap<u64, u32>,
    places: NodeTable<LruOrder>,
    /// Leaves that agents of a session used. One that was evicted, or used by others since, may still be listed.
    leaves_of: FxHashMap<u64, Vec<NodeId>>,
    present: Option<Agent>,
}

impl KvFlow {
    /// Steps until the nearest of some agents runs; the most there are if none is known.
    fn distance(&self, agents: Option<&Vec<Agent>>) -> u32 {
        let distance = |agent: &Agent| {
            let due = self.due.get(agent)?;
            Some(due.saturating_sub(*self.steps.get(&agent.0)?))
        };
        let agents = agents.into_iter().flatten();
        agents.filter_map(distance).min().unwrap_or(u32::MAX)
    }

    /// All leaves of a session are nearer by the steps it made.
    fn rank_leaves_of(&mut self, session: u64, nodes: &mut Nodes<Self>) {
        let is_of_session = |agents: &Vec<Agent>| agents.iter().any(|agent| agent.0 == session);
        let mut leaves = self.leaves_of.remove(&session).unwrap_or_default();
        leaves.retain(|id| {
            self.places.get(*id).is_some() && nodes.states.get(*id).is_some_and(is_of_session)
        });
        leaves.sort_unstable();
        leaves.dedup();
        for &id in &leaves {
            if let Some(&place) = self.places.get(id) {
                let distance = self.distance(nodes.states.get(id));
                nodes.order.put(id, (Reverse(distance), place));
            }
        }
        self.leaves_of.insert(session, leaves);
    }
}

/// Notes that an agent used a node, as the latest of those that did.
fn used_by(agents: &mut Vec<Agent>, agent: Agent) {
    agents.retain(|other| *other != agent);
    if agents.len() == MOST_AGENTS {
        agents.remove(0);
    }
    agents.push(agent);
}

impl Rule for KvFlow {
    type Order = Ranked<(Reverse<u32>, LruOrder)>;
    /// The agents that used a node, the latest last.
    type State = Vec<Agent>;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (Reverse<u32>, LruOrder) {
        if let Some(agent) = self.present {
            nodes.states.entry(leaf.id, || vec![agent]);
        }
        let place = lru_order(leaf);
        self.places.put(leaf.id, place);
        let agents = nodes.states.get(leaf.id);
        for agent in agents.into_iter().flatten() {
            self.leaves_of.entry(agent.0).or_default().push(leaf.id);
        }
        (Reverse(self.distance(agents)), place)
    }

    fn wants_path_nodes(&self) -> bool {
        true
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate], nodes: &mut Nodes<Self>) {
        let agent = (request.session, request.kind);
        let steps = request.hints.and_then(|hints| hints.steps_to_next);
        self.steps.insert(request.session, request.step);
        match steps {
            Some(steps) => self.due.insert(agent, request.step.saturating_add(steps)),
            None => self.due.remove(&agent),
        };
        self.present = Some(agent);
        for node in path {
            used_by(nodes.states.entry(node.id, Vec::new), agent);
        }
        self.rank_leaves_of(request.session, nodes);
    }

    fn withdrawn(&mut self, id: NodeId, _: WithdrawReason, _: &mut Nodes<Self>) {
        self.places.remove(id);
    }

    fn evicted(&mut self, evicted: &Candidate, _: &mut Nodes<Self>) {
        self.places.remove(evicted.id);
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
