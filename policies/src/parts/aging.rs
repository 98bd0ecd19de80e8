//! Leaves in classes whose worth changes with their age.

use std::collections::VecDeque;

use policy_api::{NodeId, Ranked};

use crate::parts::groups::Groups;
use crate::parts::node_table::NodeTable;

/// Leaves ordered by the weight of their class at their age times their own score, the smallest first; ties by `T`.
///
/// Ages are in buckets, so that a leaf changes its place a few dozen times in its life and not at every request: an age
/// counts as the lower edge of its bucket. The unit of age is the caller's.
pub(crate) struct Aging<T> {
    edges: Vec<i64>,
    now: i64,
    groups: Groups<T>,
    leaves: NodeTable<Leaf<T>>,
    offers: u64,
    /// Per bucket its leaves in the order they go on to the next one. A leaf that is gone may still be listed.
    flows: Vec<VecDeque<Flowing>>,
    /// Leaves that came into the middle of a flow, by when they go on.
    late: Ranked<i64>,
}

#[derive(Clone, Copy)]
struct Leaf<T> {
    offer: u64,
    class: u32,
    since: i64,
    score: f64,
    tie: T,
}

/// A leaf in a flow, and the offer that put it there.
#[derive(Clone, Copy)]
struct Flowing {
    id: NodeId,
    offer: u64,
    since: i64,
}

impl<T: Ord + Copy> Aging<T> {
    /// `edges` are the lower edges of the buckets, ascending from 0.
    pub(crate) fn new(edges: Vec<i64>) -> Self {
        Self {
            flows: vec![VecDeque::new(); edges.len()],
            edges,
            now: i64::MIN,
            groups: Groups::new(),
            leaves: NodeTable::new(),
            offers: 0,
            late: Ranked::new(),
        }
    }

    /// Offers a leaf whose age counts from `since`.
    pub(crate) fn offer(&mut self, id: NodeId, class: u32, since: i64, score: f64, tie: T) {
        self.offers += 1;
        let leaf = Leaf {
            offer: self.offers,
            class,
            since,
            score,
            tie,
        };
        self.late.remove(id);
        self.leaves.put(id, leaf);
        self.place(id, leaf);
    }

    pub(crate) fn withdraw(&mut self, id: NodeId) {
        self.leaves.remove(id);
        self.groups.remove(id);
        self.late.remove(id);
    }

    pub(crate) fn first(&mut self) -> Option<NodeId> {
        self.groups.first()
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: i64) {
        self.now = self.now.max(now);
        for bucket in 1..self.edges.len() {
            self.flow_into(bucket);
        }
        while let Some((due, id)) = self.late.first_entry()
            && due <= self.now
        {
            self.late.remove(id);
            if let Some(&leaf) = self.leaves.get(id) {
                self.place(id, leaf);
            }
        }
    }

    /// Gives a class its weight in every bucket.
    pub(crate) fn weigh(&mut self, class: u32, weight: impl Fn(usize) -> f64) {
        for bucket in 0..self.edges.len() {
            let group = self.group(class, bucket);
            self.groups.weigh(group, weight(bucket));
        }
    }

    /// Class of a leaf, and when its age began.
    pub(crate) fn get(&self, id: NodeId) -> Option<(u32, i64)> {
        self.leaves.get(id).map(|leaf| (leaf.class, leaf.since))
    }

    /// Moves a leaf to another class.
    pub(crate) fn reclass(&mut self, id: NodeId, class: u32) {
        if let Some(&leaf) = self.leaves.get(id) {
            self.offer(id, class, leaf.since, leaf.score, leaf.tie);
        }
    }

    /// Leaves of a class by bucket.
    pub(crate) fn counts(&self, class: u32) -> Vec<f64> {
        (0..self.edges.len())
            .map(|bucket| self.groups.len(self.group(class, bucket)) as f64)
            .collect()
    }

    /// Moves on the leaves of the bucket before that have come of age.
    fn flow_into(&mut self, bucket: usize) {
        while let Some(&Flowing { id, offer, since }) = self.flows[bucket - 1].front()
            && since.saturating_add(self.edges[bucket]) <= self.now
        {
            self.flows[bucket - 1].pop_front();
            if let Some(&leaf) = self.leaves.get(id)
                && leaf.offer == offer
            {
                self.place(id, leaf);
            }
        }
    }

    fn place(&mut self, id: NodeId, leaf: Leaf<T>) {
        let bucket = bucket_of(&self.edges, self.now.saturating_sub(leaf.since));
        let group = self.group(leaf.class, bucket);
        self.groups.put(id, group, leaf.score, leaf.tie);
        let Some(next) = self.edges.get(bucket + 1) else {
            return;
        };
        let flow = &mut self.flows[bucket];
        if flow.back().is_none_or(|last| last.since <= leaf.since) {
            flow.push_back(Flowing {
                id,
                offer: leaf.offer,
                since: leaf.since,
            });
        } else {
            self.late.put(id, leaf.since.saturating_add(*next));
        }
    }

    fn group(&self, class: u32, bucket: usize) -> u32 {
        class * self.edges.len() as u32 + bucket as u32
    }
}

/// The bucket of an age. A negative age is none.
pub(crate) fn bucket_of(edges: &[i64], age: i64) -> usize {
    edges.partition_point(|edge| *edge <= age).saturating_sub(1)
}

/// Edges that grow geometrically: 0, `first`, and so on by a factor of 2^(1/`per_octave`), each above the one before.
pub(crate) fn geometric_edges(first: i64, per_octave: u32, count: usize) -> Vec<i64> {
    let factor = 2f64.powf(1.0 / f64::from(per_octave));
    let mut edges = vec![0];
    let mut edge = first as f64;
    for _ in 1..count {
        let above = edges.last().map_or(0, |last| last + 1);
        edges.push((edge.round() as i64).max(above));
        edge *= factor;
    }
    edges
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use policy_api::Score;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_ascend_from_zero() {
        assert_eq!(geometric_edges(1, 1, 5), [0, 1, 2, 4, 8]);
        assert_eq!(geometric_edges(1, 2, 7), [0, 1, 2, 3, 4, 5, 6]);
        let edges = geometric_edges(1_000_000, 4, 60);
        assert!(edges.is_sorted_by(|a, b| a < b));
        assert_eq!((bucket_of(&edges, -5), bucket_of(&edges, 999_999)), (0, 0));
        assert_eq!(bucket_of(&edges, 1_000_000), 1);
        assert_eq!(bucket_of(&edges, i64::MAX), 59);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Offer(u32, u32, u8),
        Withdraw(u32),
        Advance(i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..10, 0u32..3, 1u8..6).prop_map(|(id, class, score)| Step::Offer(id, class, score)),
            1 => (0u32..10).prop_map(Step::Withdraw),
            2 => (0i64..9).prop_map(Step::Advance),
        ]
    }

    proptest! {
        /// Against a scan that computes every leaf's worth at its age.
        #[test]
        fn agrees_with_a_scan(steps in prop::collection::vec(step(), 1..200)) {
            let edges = geometric_edges(1, 1, 6);
            let weight = |class: u32, bucket: usize| f64::from(class + 1) / f64::from(bucket as u32 + 1);
            let mut aging = Aging::new(edges.clone());
            for class in 0..3 {
                aging.weigh(class, |bucket| weight(class, bucket));
            }
            let mut now = 0;
            aging.advance(now);
            let mut leaves = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Offer(id, class, score) => {
                        aging.offer(NodeId(id), class, now, f64::from(score), id);
                        leaves.insert(id, (class, now, f64::from(score)));
                    }
                    Step::Withdraw(id) => {
                        aging.withdraw(NodeId(id));
                        leaves.remove(&id);
                    }
                    Step::Advance(by) => {
                        now += by;
                        aging.advance(now);
                    }
                }
                let first = leaves.iter().min_by_key(|(id, (class, since, score))| {
                    (Score(weight(*class, bucket_of(&edges, now - since)) * score), **id)
                });
                prop_assert_eq!(aging.first(), first.map(|(id, _)| NodeId(*id)));
            }
        }
    }
}
