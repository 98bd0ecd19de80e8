//! At what age things are used again, learned by class.

/// Uses by age and class, and the chance of a use that follows from them.
///
/// Ages are in buckets. What is neither used nor given up yet counts as being at risk at every age it has reached, so that
/// those who have not come back are not forgotten (the life table of Kaplan and Meier, with hazards instead of steps).
pub(crate) struct Survival {
    edges: Vec<i64>,
    classes: Vec<Option<Counts>>,
    all: Counts,
}

#[derive(Clone)]
struct Counts {
    used: Vec<f64>,
    lost: Vec<f64>,
}

/// A class starts as so many observations of what all classes do, and all classes as so many of what is assumed: one use in ten
/// of what reaches a bucket. On buckets that grow geometrically that is a power law, under which the older is the
/// less likely to be used: LRU, as long as nothing is known.
const PRIOR_WEIGHT: f64 = 4.0;
const ASSUMED_HAZARD: f64 = 0.1;

impl Survival {
    /// `edges` are the lower edges of the buckets, ascending from 0.
    pub(crate) fn new(edges: Vec<i64>, classes: usize) -> Self {
        Self {
            all: Counts::new(edges.len()),
            classes: vec![None; classes],
            edges,
        }
    }

    /// Something of the class was used at this age.
    pub(crate) fn used(&mut self, class: u32, bucket: usize) {
        self.all.used[bucket] += 1.0;
        self.class(class).used[bucket] += 1.0;
    }

    /// Something of the class reached this age and is no longer watched.
    pub(crate) fn lost(&mut self, class: u32, bucket: usize) {
        self.all.lost[bucket] += 1.0;
        self.class(class).lost[bucket] += 1.0;
    }

    /// Gives what was counted so far less weight.
    pub(crate) fn fade(&mut self, kept: f64) {
        for counts in self.classes.iter_mut().flatten().chain([&mut self.all]) {
            for count in counts.used.iter_mut().chain(&mut counts.lost) {
                *count *= kept;
            }
        }
    }

    /// For a class, by bucket, the chance that what has reached its lower edge is used within `horizon`. `alive` are the
    /// things of the class that are watched, by bucket; `all_alive` those of all classes.
    pub(crate) fn chances(
        &self,
        class: u32,
        alive: &[f64],
        all_alive: &[f64],
        horizon: f64,
    ) -> Vec<f64> {
        let assumed = vec![ASSUMED_HAZARD; self.edges.len()];
        let common = self.all.hazards(all_alive, &assumed);
        let hazards = match &self.classes[class as usize] {
            Some(counts) => counts.hazards(alive, &common),
            None => common,
        };
        self.chances_of(&hazards, horizon)
    }

    fn class(&mut self, class: u32) -> &mut Counts {
        let buckets = self.edges.len();
        self.classes[class as usize].get_or_insert_with(|| Counts::new(buckets))
    }

    fn chances_of(&self, hazards: &[f64], horizon: f64) -> Vec<f64> {
        // Log of the chance to reach each edge unused.
        let mut reach = vec![0.0];
        for hazard in hazards {
            let last = reach.last().copied().unwrap_or_default();
            reach.push(last + (-hazard.min(LARGEST_HAZARD)).ln_1p());
        }
        let chance = |(bucket, edge): (usize, &i64)| {
            let from = reach[bucket];
            let to = self.reach_at(&reach, bucket, *edge as f64 + horizon);
            -(to - from).exp_m1()
        };
        self.edges.iter().enumerate().map(chance).collect()
    }

    /// Log of the chance to reach an age unused, between the edges in proportion. The last bucket is as wide as its edge.
    fn reach_at(&self, reach: &[f64], from_bucket: usize, age: f64) -> f64 {
        let above = self.edges[from_bucket..].partition_point(|edge| (*edge as f64) <= age);
        let bucket = from_bucket + above.saturating_sub(1);
        let edge = self.edges[bucket] as f64;
        let next = self
            .edges
            .get(bucket + 1)
            .map_or(2.0 * edge, |next| *next as f64);
        let part = ((age - edge) / (next - edge).max(1.0)).min(1.0);
        reach[bucket] + part * (reach[bucket + 1] - reach[bucket])
    }
}

/// A bucket in which everything was used must leave something to tell later buckets by.
const LARGEST_HAZARD: f64 = 1.0 - 1e-9;

impl Counts {
    fn new(buckets: usize) -> Self {
        Self {
            used: vec![0.0; buckets],
            lost: vec![0.0; buckets],
        }
    }

    /// The share of what reaches a bucket that is used in it.
    fn hazards(&self, alive: &[f64], prior: &[f64]) -> Vec<f64> {
        let mut hazards = vec![0.0; prior.len()];
        let mut at_risk = 0.0;
        for bucket in (0..prior.len()).rev() {
            // What is lost or still watched has not been through its bucket: half of it counts.
            let passing = self.lost[bucket] + alive[bucket];
            at_risk += self.used[bucket] + passing;
            let exposed = at_risk - passing / 2.0;
            hazards[bucket] =
                (self.used[bucket] + PRIOR_WEIGHT * prior[bucket]) / (exposed + PRIOR_WEIGHT);
        }
        hazards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aging::geometric_edges;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn as_long_as_nothing_is_known_the_older_is_less_likely_to_be_used() {
        let survival = Survival::new(geometric_edges(1, 1, 10), 2);
        let chances = survival.chances(0, &[0.0; 10], &[0.0; 10], 4.0);
        // From age 1 on: the buckets [1, 2), [2, 4) and a quarter of [4, 8).
        assert!(close(chances[1], 1.0 - 0.9 * 0.9 * 0.9f64.powf(0.25)));
        assert!(chances[1..].is_sorted_by(|younger, older| younger > older));
    }

    #[test]
    fn hazards_count_who_is_still_waiting() {
        // Ten reach bucket 1: four are used in it, two are lost and four wait in bucket 3.
        let mut counts = Counts::new(4);
        counts.used[1] = 4.0;
        counts.lost[1] = 2.0;
        let hazards = counts.hazards(&[0.0, 0.0, 0.0, 4.0], &[0.1; 4]);
        assert!(close(hazards[0], 0.4 / 14.0));
        assert!(close(hazards[1], 4.4 / 13.0));
        assert!(close(hazards[2], 0.4 / 8.0));
        assert!(close(hazards[3], 0.4 / 6.0));
    }

    #[test]
    fn a_class_leans_on_all_until_it_has_its_own() {
        let mut survival = Survival::new(geometric_edges(1, 1, 6), 2);
        for _ in 0..1000 {
            survival.used(0, 2);
        }
        let chances = |survival: &Survival| survival.chances(1, &[0.0; 6], &[0.0; 6], 1e9);
        assert!(chances(&survival)[0] > 0.95);
        for _ in 0..1000 {
            survival.lost(1, 5);
        }
        assert!(chances(&survival)[0] < 0.05);
        survival.fade(0.0);
        assert!(close(chances(&survival)[0], 1.0 - 0.9f64.powi(6)));
    }
}
