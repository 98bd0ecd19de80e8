//! Leaves in classes whose worth changes with their age.

use std::collections::VecDeque;

use policy_api::{NodeId, Ranked};

use crate::parts::groups::{Grouped, Groups};
use crate::parts::keyed::Order;
use crate::parts::node_table::NodeTable;

/// Leaves ordered by the weight of their class at their age times their own score, the smallest first; ties by `T`.
///
/// Ages are in buckets, so that a leaf changes its place a few dozen times in its life and not at every request: an age
/// counts as the lower edge of its bucket. The unit of age is the caller's.
///
/// Each class at each age is a group of [`Groups`]. A leaf of class 1 that is offered at age 0 flows through its row as time
/// passes, and always counts with the weight of the group that it is in:
///
/// ```text
///   age          0 ..    1 ..    2 ..    4 ..
///   class 0      [ ]     [a]     [ ]     [b]       weights are set from outside, by what is learned
///   class 1      [c] ->  [ ] ->  [ ] ->  [ ]
///   flows        c       a       -               per age, in the order in which leaves go on to the next one
/// ```
pub(crate) struct Aging<T> {
    edges: Vec<i64>,
    now: i64,
    groups: Groups<T>,
    leaves: NodeTable<Leaf<T>>,
    offers: u64,
    /// Per bucket its leaves in the order they go on to the next one. A leaf that is gone may still be listed.
    flows: Vec<VecDeque<Flowing>>,
    /// Leaves that came into the middle of a flow, by when they go on: wider than the clock, so that no sum of a time and an age
    /// is cut off at its end, where a leaf would be due for ever without being old enough.
    late: Ranked<i128>,
}

/// Where a leaf is placed: its class, when its age began, its own score, and what decides among equals.
#[derive(Clone, Copy)]
pub(crate) struct Aged<T> {
    pub(crate) class: u32,
    pub(crate) since: i64,
    pub(crate) score: f64,
    pub(crate) tie: T,
}

/// A leaf, and the offer that it has its place from.
#[derive(Clone, Copy)]
struct Leaf<T> {
    offer: u64,
    aged: Aged<T>,
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
            groups: Groups::default(),
            leaves: NodeTable::new(),
            offers: 0,
            late: Ranked::new(),
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, now: i64) {
        self.now = self.now.max(now);
        for bucket in 1..self.edges.len() {
            self.flow_into(bucket);
        }
        while let Some((due, id)) = self.late.first_entry()
            && due <= i128::from(self.now)
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
        let leaf = self.leaves.get(id)?;
        Some((leaf.aged.class, leaf.aged.since))
    }

    /// Moves a leaf to another class.
    pub(crate) fn reclass(&mut self, id: NodeId, class: u32) {
        if let Some(&Leaf { aged, .. }) = self.leaves.get(id) {
            self.put(id, Aged { class, ..aged });
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
            && self.age(since) >= self.edges[bucket]
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
        let Aged {
            class,
            since,
            score,
            tie,
        } = leaf.aged;
        let bucket = bucket_of(&self.edges, self.age(since));
        let group = self.group(class, bucket);
        self.groups.put(id, Grouped { group, score, tie });
        let Some(next) = self.edges.get(bucket + 1) else {
            return;
        };
        let flow = &mut self.flows[bucket];
        if flow.back().is_none_or(|last| last.since <= since) {
            let offer = leaf.offer;
            flow.push_back(Flowing { id, offer, since });
        } else {
            self.late.put(id, i128::from(since) + i128::from(*next));
        }
    }

    /// Ages are differences, here and where due leaves are looked for: both agree, so whatever is due goes on to an older bucket.
    fn age(&self, since: i64) -> i64 {
        self.now.saturating_sub(since)
    }

    fn group(&self, class: u32, bucket: usize) -> u32 {
        class * self.edges.len() as u32 + bucket as u32
    }
}

impl<T: Ord + Copy> Order for Aging<T> {
    type Key = Aged<T>;

    fn put(&mut self, id: NodeId, aged: Aged<T>) {
        self.offers += 1;
        let offer = self.offers;
        let leaf = Leaf { offer, aged };
        self.late.remove(id);
        self.leaves.put(id, leaf);
        self.place(id, leaf);
    }

    fn remove(&mut self, id: NodeId) {
        self.leaves.remove(id);
        self.groups.remove(id);
        self.late.remove(id);
    }

    fn first(&mut self) -> Option<NodeId> {
        self.groups.first()
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

    /// At the end of the clock sums of a time and an age are cut off, differences are not.
    #[test]
    fn time_may_stand_still_at_its_end() {
        for since in [i64::MIN, -1, 0, i64::MAX - 1, i64::MAX] {
            let mut aging = Aging::new(geometric_edges(100, 1, 26));
            let at = |since| Aged {
                class: 0,
                since,
                score: 1.0,
                tie: 0,
            };
            aging.put(NodeId(0), at(i64::MAX));
            // Not in the order of the flow, so that it is late.
            aging.put(NodeId(1), at(since));
            aging.advance(i64::MAX);
            aging.advance(i64::MAX);
            assert_eq!(aging.counts(0).iter().sum::<f64>(), 2.0);
        }
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
                        let score = f64::from(score);
                        aging.put(NodeId(id), Aged { class, since: now, score, tie: id });
                        leaves.insert(id, (class, now, score));
                    }
                    Step::Withdraw(id) => {
                        aging.remove(NodeId(id));
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
