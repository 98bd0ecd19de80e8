//! What most policies are: an order of leaves by one key of their facts.
//!
//! A policy says what the key is; [`Keyed`] does the rest, which is the same for all of them:
//!
//! ```text
//!   cache                 Keyed                          rule
//!   offer(leaf)     ->    order.put(id, key)       <-    key(leaf)
//!   withdraw(id)    ->    order.remove(id)         ->    withdrawn(id)
//!   victim()        <-    order.first()            <-    blocks(id), mostly all
//!   evicted(leaf)   ->    order and state removed  ->    evicted(leaf), before that
//!   split, merge    ->    state copied, removed
//!   observe(request)                               ->    observe(request)
//! ```

use std::cmp::Reverse;

use policy_api::{
    Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim, WithdrawReason,
};

use crate::parts::node_table::NodeTable;

/// The order of all ties, and of LRU: the older last use, then the deeper first block, then the older creation.
pub(crate) type LruOrder = (Tick, Reverse<u32>, Tick);

/// The leaf's place in LRU order.
pub(crate) fn lru_order(leaf: &Candidate) -> LruOrder {
    (leaf.last_used, Reverse(leaf.depth_blocks), leaf.created)
}

/// The order of policies that rank groups of leaves: within a group the deeper first block, then the older last use and creation.
pub(crate) type DeepestFirst = (Reverse<u32>, Tick, Tick);

/// The leaf's place in that order.
pub(crate) fn deepest_first(leaf: &Candidate) -> DeepestFirst {
    (Reverse(leaf.depth_blocks), leaf.last_used, leaf.created)
}

/// Evictable nodes in an order.
pub(crate) trait Order {
    /// What decides about a node.
    type Key;

    /// Puts a node in, or gives it a new key.
    fn put(&mut self, id: NodeId, key: Self::Key);

    /// Takes a node out; does nothing if it is not in.
    fn remove(&mut self, id: NodeId);

    /// The node to evict first.
    fn first(&mut self) -> Option<NodeId>;
}

impl<K: Ord + Copy> Order for Ranked<K> {
    type Key = K;

    fn put(&mut self, id: NodeId, key: K) {
        self.put(id, key);
    }

    fn remove(&mut self, id: NodeId) {
        self.remove(id);
    }

    fn first(&mut self) -> Option<NodeId> {
        self.first()
    }
}

/// A policy that is a key: all that its file has to say.
pub(crate) trait Rule {
    /// How leaves are ordered: mostly [`Ranked`] by the key, the smallest first.
    type Order: Order;
    /// What the rule knows of every node, evictable or not; `()` for nothing.
    type State: Clone;

    /// The leaf's key. It holds until the leaf is offered anew.
    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> <Self::Order as Order>::Key;

    /// How many blocks of the first leaf should be evicted at most.
    fn blocks(&self, _first: NodeId, _nodes: &Nodes<Self>) -> u32 {
        u32::MAX
    }

    /// Whether [`observe`](Self::observe) is given the nodes on the path.
    fn wants_path_nodes(&self) -> bool {
        false
    }

    /// A request came; what is on its path is still as it was before.
    fn observe(&mut self, _: &RequestView<'_>, _path: &[Candidate], _: &mut Nodes<Self>) {}

    /// The node is no longer in the order, though nothing of it was evicted.
    fn withdrawn(&mut self, _: NodeId, _: WithdrawReason, _: &mut Nodes<Self>) {}

    /// This much was evicted. The node is still in the order, and its state in the table.
    fn evicted(&mut self, _: &Candidate, _: &mut Nodes<Self>) {}

    /// The node is no more: it was evicted as a whole, or merged with its child.
    fn forgotten(&mut self, _: NodeId) {}
}

/// The nodes of a rule: those that are evictable in their order, and the state of each.
pub(crate) struct Nodes<R: Rule + ?Sized> {
    pub(crate) order: R::Order,
    pub(crate) states: NodeTable<R::State>,
}

/// An eviction policy made of a rule.
pub(crate) struct Keyed<R: Rule> {
    pub(crate) rule: R,
    pub(crate) nodes: Nodes<R>,
}

impl<R: Rule> Keyed<R> {
    pub(crate) fn new(rule: R) -> Self
    where
        R::Order: Default,
    {
        Self::ordered_by(rule, R::Order::default())
    }

    /// With an order that has to be told something to begin with.
    pub(crate) fn ordered_by(rule: R, order: R::Order) -> Self {
        Self {
            rule,
            nodes: Nodes {
                order,
                states: NodeTable::new(),
            },
        }
    }
}

impl<R: Rule> EvictionPolicy for Keyed<R> {
    fn offer(&mut self, leaf: &Candidate) {
        let key = self.rule.key(leaf, &mut self.nodes);
        self.nodes.order.put(leaf.id, key);
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.nodes.order.remove(id);
        self.rule.withdrawn(id, why, &mut self.nodes);
    }

    fn victim(&mut self) -> Option<Victim> {
        let id = self.nodes.order.first()?;
        let blocks = self.rule.blocks(id, &self.nodes);
        Some(Victim { id, blocks })
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.rule.evicted(evicted, &mut self.nodes);
        self.nodes.order.remove(evicted.id);
        if whole {
            self.nodes.states.remove(evicted.id);
            self.rule.forgotten(evicted.id);
        }
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.nodes.states.split(head, tail);
    }

    fn merge(&mut self, head: NodeId, _: NodeId, _: u32) {
        self.nodes.states.remove(head);
        self.rule.forgotten(head);
    }

    fn wants_path_nodes(&self) -> bool {
        self.rule.wants_path_nodes()
    }

    fn observe(&mut self, request: &RequestView<'_>, path: &[Candidate]) {
        self.rule.observe(request, path, &mut self.nodes);
    }
}

/// The rule of a key that follows from the candidate alone.
impl<K: Ord + Copy, F: Fn(&Candidate) -> K> Rule for F {
    type Order = Ranked<K>;
    type State = ();

    fn key(&mut self, leaf: &Candidate, _: &mut Nodes<Self>) -> K {
        self(leaf)
    }
}

/// Evicts the leaf with the smallest key. The key may change only when the facts of the leaf do.
pub(crate) fn by_key<K: Ord + Copy, F: Fn(&Candidate) -> K>(key: F) -> Keyed<F> {
    Keyed::new(key)
}
