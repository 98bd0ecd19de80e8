//! Candidates whose scores change with every request, yet never fall along two orders that do not.

use std::collections::BTreeSet;

use policy_api::{NodeId, Score};

use crate::parts::node_table::NodeTable;

/// Finds the least of scores that are made of two parts, say of an age and of a worth per byte: the score never falls as
/// either part grows, and whatever else it depends on, it depends on for all alike.
///
/// By the threshold algorithm (Fagin, Lotem, Naor, PODS 2001): candidates are kept in the order of each part; both orders are
/// walked at once from the smaller end, until what lies ahead on both cannot be less than the least seen. That is exact, costs
/// O(log n) to keep, and mostly ends after a few steps; at worst it visits all.
pub(crate) struct TwoOrders<A> {
    parts: NodeTable<(A, Score)>,
    by_first: BTreeSet<(A, NodeId)>,
    by_second: BTreeSet<(Score, A, NodeId)>,
}

/// The ends of both orders.
pub(crate) struct Ends<A> {
    pub(crate) first: (A, A),
    pub(crate) second: (f64, f64),
}

impl<A: Ord + Copy> TwoOrders<A> {
    pub(crate) fn new() -> Self {
        Self {
            parts: NodeTable::new(),
            by_first: BTreeSet::new(),
            by_second: BTreeSet::new(),
        }
    }

    /// Puts a candidate in, or gives it new parts. The first part also orders equal scores.
    pub(crate) fn put(&mut self, id: NodeId, first: A, second: f64) {
        self.remove(id);
        let second = Score(second);
        self.parts.put(id, (first, second));
        self.by_first.insert((first, id));
        self.by_second.insert((second, first, id));
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        if let Some((first, second)) = self.parts.remove(id) {
            self.by_first.remove(&(first, id));
            self.by_second.remove(&(second, first, id));
        }
    }

    pub(crate) fn ends(&self) -> Option<Ends<A>> {
        Some(Ends {
            first: (self.by_first.first()?.0, self.by_first.last()?.0),
            second: (self.by_second.first()?.0.0, self.by_second.last()?.0.0),
        })
    }

    /// The candidate with the least score; of equals the one whose first part is less, then by id.
    pub(crate) fn least(&self, score: impl Fn(A, f64) -> f64) -> Option<NodeId> {
        let mut least: Option<(Score, A, NodeId)> = None;
        for (&(first, id), &(second, other, other_id)) in self.by_first.iter().zip(&self.by_second)
        {
            if let Some(&(_, Score(worth))) = self.parts.get(id) {
                meet(&mut least, (Score(score(first, worth)), first, id));
            }
            let met = (Score(score(other, second.0)), other, other_id);
            meet(&mut least, met);
            // Whatever was not met has parts no less than these.
            let ahead = (Score(score(first, second.0)), first);
            if least.is_some_and(|(score, first, _)| (score, first) <= ahead) {
                break;
            }
        }
        least.map(|(_, _, id)| id)
    }
}

fn meet<T: Ord>(least: &mut Option<T>, met: T) {
    if least.as_ref().is_none_or(|least| met < *least) {
        *least = Some(met);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a scan of all, at different weights of the two parts.
        #[test]
        fn agrees_with_a_scan(
            steps in prop::collection::vec((0u32..12, prop::option::of((0u32..6, 0u8..6))), 1..60),
            weight in 0u8..4,
        ) {
            let score = |first: u32, second: f64| f64::from(first) + f64::from(weight) * second;
            let mut orders = TwoOrders::new();
            let mut model = std::collections::BTreeMap::new();
            for (id, parts) in steps {
                match parts {
                    Some((first, second)) => {
                        orders.put(NodeId(id), first, f64::from(second));
                        model.insert(NodeId(id), (first, f64::from(second)));
                    }
                    None => {
                        orders.remove(NodeId(id));
                        model.remove(&NodeId(id));
                    }
                }
                let least = model.iter().min_by_key(|(id, (first, second))| {
                    (Score(score(*first, *second)), *first, **id)
                });
                prop_assert_eq!(orders.least(score), least.map(|(id, _)| *id));
            }
        }
    }
}
