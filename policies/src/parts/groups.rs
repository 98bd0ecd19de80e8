//! Leaves in groups that share a weight.

use policy_api::{InOrder, NodeId, Ranked, Score};

use crate::parts::keyed::Order;
use crate::parts::node_table::NodeTable;

/// Leaves ordered by group weight times own score, the smallest first; ties by `T`, then by group. Within a group the own score
/// orders, also where the weight is 0.
///
/// ```text
///   group   weight   members by own score       its first among the firsts
///     0       2.0    3 (x)   5 (y)              6.0 (x)
///     1       0.5    4 (z)   9 (w)              2.0 (z)   <- the first of all
/// ```
///
/// When a weight changes, one number is compared anew instead of all members: a score that changes with time, or with what was
/// learned, costs nothing per leaf as long as all leaves of a group change alike.
pub(crate) struct Groups<T> {
    groups: Vec<Group<T>>,
    /// The first of every group that has members, by group number.
    firsts: Ranked<(Score, T)>,
    members: NodeTable<Member>,
    stamps: u64,
}

/// Where a leaf is placed: its group, its own score, and what decides among equals.
#[derive(Clone, Copy)]
pub(crate) struct Grouped<T> {
    pub(crate) group: u32,
    pub(crate) score: f64,
    pub(crate) tie: T,
}

#[derive(Clone, Copy)]
struct Member {
    group: u32,
    stamp: u64,
}

struct Group<T> {
    weight: f64,
    entries: InOrder<Entry<T>>,
    live: usize,
    /// Stamp of the entry that stands for the group among the firsts.
    first: u64,
}

/// A score, its tie, whose they are, and the stamp by which a stale entry is told.
type Entry<T> = (Score, T, NodeId, u64);

/// Stale entries are swept out when they outnumber live ones by this factor (and this number).
const STALE_FACTOR: usize = 4;
const STALE_FLOOR: usize = 16;

impl<T: Ord + Copy> Order for Groups<T> {
    type Key = Grouped<T>;

    /// Puts a leaf into a group, or moves it there. A new group weighs 1.
    fn put(&mut self, id: NodeId, Grouped { group, score, tie }: Grouped<T>) {
        self.remove(id);
        self.make_groups(group);
        self.stamps += 1;
        let stamp = self.stamps;
        self.members.put(id, Member { group, stamp });
        let entry = (Score(score), tie, id, stamp);
        let group_state = &mut self.groups[group as usize];
        let is_first = group_state.entries.first().is_none_or(|top| entry < *top);
        group_state.entries.push(entry);
        group_state.live += 1;
        let stale_floor = STALE_FLOOR + STALE_FACTOR * group_state.live;
        if is_first || group_state.entries.len() > stale_floor {
            self.refresh(group);
        }
    }

    fn remove(&mut self, id: NodeId) {
        if let Some(Member { group, stamp }) = self.members.remove(id) {
            let state = &mut self.groups[group as usize];
            state.live -= 1;
            if state.first == stamp {
                self.refresh(group);
            }
        }
    }

    fn first(&mut self) -> Option<NodeId> {
        let group = self.firsts.first()?;
        let (_, _, id, _) = self.groups[group.index()].entries.first()?;
        Some(*id)
    }
}

impl<T: Ord + Copy> Default for Groups<T> {
    fn default() -> Self {
        Self {
            groups: Vec::new(),
            firsts: Ranked::default(),
            members: NodeTable::new(),
            stamps: 0,
        }
    }
}

impl<T: Ord + Copy> Groups<T> {
    /// Gives a group its weight.
    pub(crate) fn weigh(&mut self, group: u32, weight: f64) {
        self.make_groups(group);
        let state = &mut self.groups[group as usize];
        state.weight = weight;
        if state.live > 0 {
            self.refresh(group);
        }
    }

    /// Leaves in a group.
    pub(crate) fn len(&self, group: u32) -> usize {
        let group = self.groups.get(group as usize);
        group.map_or(0, |group| group.live)
    }

    fn make_groups(&mut self, group: u32) {
        while self.groups.len() <= group as usize {
            self.groups.push(Group {
                weight: 1.0,
                entries: InOrder::new(),
                live: 0,
                first: 0,
            });
        }
    }

    /// Sweeps stale entries off a group and ranks its first.
    fn refresh(&mut self, number: u32) {
        let (group, members) = (&mut self.groups[number as usize], &self.members);
        let is_live = |(_, _, id, stamp): &Entry<T>| {
            members
                .get(*id)
                .is_some_and(|member| member.stamp == *stamp)
        };
        group.entries.drop_while(|entry| !is_live(entry));
        if group.entries.len() > STALE_FLOOR + STALE_FACTOR * group.live {
            group.entries.retain(is_live);
        }
        match group.entries.first() {
            Some((Score(score), tie, _, stamp)) => {
                group.first = *stamp;
                let first = (Score(group.weight * score), *tie);
                self.firsts.put(NodeId(number), first);
            }
            None => {
                group.first = 0;
                self.firsts.remove(NodeId(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u32, u32, u8),
        Remove(u32),
        Weigh(u32, u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..12, 0u32..4, 0u8..6).prop_map(|(id, group, score)| Step::Put(id, group, score)),
            2 => (0u32..12).prop_map(Step::Remove),
            1 => (0u32..4, 0u8..4).prop_map(|(group, weight)| Step::Weigh(group, weight)),
        ]
    }

    proptest! {
        /// Against a scan of all leaves. The tie is the id's complement, so that equal scores are told apart.
        #[test]
        fn agrees_with_a_scan(steps in prop::collection::vec(step(), 1..200)) {
            let mut groups = Groups::default();
            let mut leaves = BTreeMap::new();
            let mut weights = [1.0; 4];
            for step in steps {
                match step {
                    Step::Put(id, group, score) => {
                        let score = f64::from(score);
                        groups.put(NodeId(id), Grouped { group, score, tie: 100 - id });
                        leaves.insert(id, (group, score));
                    }
                    Step::Remove(id) => {
                        groups.remove(NodeId(id));
                        leaves.remove(&id);
                    }
                    Step::Weigh(group, weight) => {
                        groups.weigh(group, f64::from(weight));
                        weights[group as usize] = f64::from(weight);
                    }
                }
                // A weight of zero makes all scores of a group equal, though within it they keep their order.
                let worth = |(id, (group, score)): (&u32, &(u32, f64))| {
                    (Score(weights[*group as usize] * score), Score(*score), 100 - *id)
                };
                let group_first = (0..4).filter_map(|group| {
                    leaves.iter().filter(|leaf| leaf.1.0 == group)
                        .min_by_key(|leaf| (Score(leaf.1.1), 100 - *leaf.0))
                });
                let first = group_first.min_by_key(|leaf| { let (w, _, tie) = worth(*leaf); (w, tie) });
                prop_assert_eq!(groups.first(), first.map(|(id, _)| NodeId(*id)));
            }
        }
    }
}
