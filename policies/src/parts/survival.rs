//! At what age things are used again, learned by class.

/// Uses by age and class, and what a thing of some age is worth that follows from them.
///
/// Ages are in buckets. What is neither used nor given up yet counts as being at risk at every age it has reached, so that
/// those who have not come back are not forgotten (the life table of Kaplan and Meier, with hazards instead of steps). What
/// was watched from some age on only is at risk from there on. Four things of one class, of which `d` is watched from age 1 on:
///
/// ```text
///   age        0 ..      1 ..      2 ..      4 ..
///   a          --------- used
///   b          ------------------- lost
///   c          ------------------- waiting
///   d                    --------- used
///   at risk    3         4         2            what is lost or waits has not been through its bucket: half of it counts
///   used       0         1         1
///   hazard     0         1/4       1/2
/// ```
///
/// The pieces nest like this: a policy counts uses, losses and joins here as they happen; at a fit it adds what is
/// [alive](super::aging::Aging::counts) by class and age, gets the worth of every class at every age, and makes that the weights
/// of [`Aging`](super::aging::Aging).
pub(crate) struct Survival {
    edges: Vec<i64>,
    /// A class starts as so many observations of what all classes do, and all classes as so many of what is assumed.
    prior: f64,
    classes: Vec<AgeCounts>,
    all: AgeCounts,
}

#[derive(Clone)]
struct AgeCounts {
    used: Vec<f64>,
    lost: Vec<f64>,
    joined: Vec<f64>,
}

/// What is asked of the life table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Worth {
    /// The chance of a use within so much time.
    Within(f64),
    /// Uses per time for which it has to be kept, over the horizon for which that is most (Gittins' index).
    Rate,
}

/// What was asked for, by class and bucket of age.
pub(crate) struct Fit {
    /// Of each class that is known.
    pub(crate) classes: Vec<Vec<f64>>,
    /// Of a class that is not.
    pub(crate) common: Vec<f64>,
}

/// One use in ten of what reaches a bucket. On buckets that grow geometrically that is a power law, under which the older is
/// the less likely to be used: LRU, as long as nothing is known.
const ASSUMED_HAZARD: f64 = 0.1;

impl Survival {
    /// `edges` are the lower edges of the buckets, ascending from 0.
    pub(crate) fn new(edges: Vec<i64>, prior: f64) -> Self {
        Self {
            all: AgeCounts::new(edges.len()),
            classes: Vec::new(),
            edges,
            prior,
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

    /// Something of the class is watched from this age on only.
    pub(crate) fn joined(&mut self, class: u32, bucket: usize) {
        self.all.joined[bucket] += 1.0;
        self.class(class).joined[bucket] += 1.0;
    }

    /// Gives what was counted so far less weight.
    pub(crate) fn fade(&mut self, kept: f64) {
        for counts in self.classes.iter_mut().chain([&mut self.all]) {
            let joined = counts.joined.iter_mut();
            let ended = counts.used.iter_mut().chain(&mut counts.lost);
            ended.chain(joined).for_each(|count| *count *= kept);
        }
    }

    /// What the classes are worth. `alive` are the things that are watched, by class and bucket.
    pub(crate) fn fit(&self, alive: &[Vec<f64>], worth: Worth) -> Fit {
        let buckets = self.edges.len();
        let all_alive: Vec<f64> = (0..buckets)
            .map(|bucket| alive.iter().map(|class| class[bucket]).sum())
            .collect();
        let assumed = vec![ASSUMED_HAZARD; buckets];
        let common = self.all.hazards(&all_alive, &assumed, self.prior);
        let nothing = AgeCounts::new(buckets);
        let classes = alive.iter().enumerate().map(|(class, alive)| {
            let counts = self.classes.get(class).unwrap_or(&nothing);
            self.worth(&counts.hazards(alive, &common, self.prior), worth)
        });
        Fit {
            classes: classes.collect(),
            common: self.worth(&common, worth),
        }
    }

    fn class(&mut self, class: u32) -> &mut AgeCounts {
        let class = class as usize;
        if class >= self.classes.len() {
            let none = AgeCounts::new(self.edges.len());
            self.classes.resize(class + 1, none);
        }
        &mut self.classes[class]
    }

    /// By bucket, the worth of what has reached its lower edge.
    fn worth(&self, hazards: &[f64], worth: Worth) -> Vec<f64> {
        match worth {
            Worth::Within(horizon) => self.chances(hazards, horizon),
            Worth::Rate => self.rates(hazards),
        }
    }

    /// From the last bucket to the first: a stretch of buckets takes in the next one as long as that does better. So a bucket
    /// ends up with the best of all stretches that begin with it.
    fn rates(&self, hazards: &[f64]) -> Vec<f64> {
        let mut rates = vec![0.0; hazards.len()];
        let mut later: Vec<Stretch> = Vec::new();
        for bucket in (0..hazards.len()).rev() {
            let used = hazards[bucket].min(LARGEST_HAZARD);
            let width = self.upper_edge(bucket) - self.edges[bucket] as f64;
            let mut stretch = Stretch {
                used,
                time: (1.0 - used / 2.0) * width,
                left: 1.0 - used,
            };
            while let Some(next) = later.pop_if(|next| next.rate() > stretch.rate()) {
                stretch.used += stretch.left * next.used;
                stretch.time += stretch.left * next.time;
                stretch.left *= next.left;
            }
            rates[bucket] = stretch.rate();
            later.push(stretch);
        }
        rates
    }

    fn chances(&self, hazards: &[f64], horizon: f64) -> Vec<f64> {
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

    /// Log of the chance to reach an age unused, between the edges in proportion.
    fn reach_at(&self, reach: &[f64], from_bucket: usize, age: f64) -> f64 {
        let above = self.edges[from_bucket..].partition_point(|edge| (*edge as f64) <= age);
        let bucket = from_bucket + above.saturating_sub(1);
        let edge = self.edges[bucket] as f64;
        let width = self.upper_edge(bucket) - edge;
        let part = ((age - edge) / width).min(1.0);
        reach[bucket] + part * (reach[bucket + 1] - reach[bucket])
    }

    /// The last bucket is as wide as its edge.
    fn upper_edge(&self, bucket: usize) -> f64 {
        match self.edges.get(bucket + 1) {
            Some(next) => *next as f64,
            None => (2 * self.edges[bucket]).max(1) as f64,
        }
    }
}

/// A bucket in which everything was used must leave something to tell later buckets by.
const LARGEST_HAZARD: f64 = 1.0 - 1e-9;

/// Ages that follow on each other, of one thing that reaches the first.
struct Stretch {
    /// Its chance of being used.
    used: f64,
    /// How long it is expected to be kept.
    time: f64,
    /// Its chance of getting past the stretch unused.
    left: f64,
}

impl Stretch {
    fn rate(&self) -> f64 {
        self.used / self.time
    }
}

impl AgeCounts {
    fn new(buckets: usize) -> Self {
        let none = vec![0.0; buckets];
        Self {
            used: none.clone(),
            lost: none.clone(),
            joined: none,
        }
    }

    /// The share of what reaches a bucket that is used in it.
    fn hazards(&self, alive: &[f64], prior: &[f64], prior_weight: f64) -> Vec<f64> {
        let mut hazards = vec![0.0; prior.len()];
        let mut at_risk = 0.0;
        for bucket in (0..prior.len()).rev() {
            // What is lost or still watched has not been through its bucket: half of it counts.
            let passing = self.lost[bucket] + alive[bucket];
            at_risk += self.used[bucket] + passing;
            let exposed = (at_risk - passing / 2.0).max(0.0);
            hazards[bucket] =
                (self.used[bucket] + prior_weight * prior[bucket]) / (exposed + prior_weight);
            at_risk -= self.joined[bucket];
        }
        hazards
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parts::aging::geometric_edges;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    fn survival(buckets: usize) -> Survival {
        Survival::new(geometric_edges(1, 1, buckets), 4.0)
    }

    #[test]
    fn as_long_as_nothing_is_known_the_older_is_less_likely_to_be_used() {
        let chances = survival(10).fit(&[], Worth::Within(4.0)).common;
        // From age 1 on: the buckets [1, 2), [2, 4) and a quarter of [4, 8).
        assert!(close(chances[1], 1.0 - 0.9 * 0.9 * 0.9f64.powf(0.25)));
        assert!(chances[1..].is_sorted_by(|younger, older| younger > older));
        let rates = survival(10).fit(&[], Worth::Rate).common;
        // Of one that reaches age 4, 0.1 are used within [4, 8), and 0.95 are there on average.
        assert!(close(rates[3], 0.1 / (0.95 * 4.0)));
        assert!(rates[1..].is_sorted_by(|younger, older| younger > older));
    }

    #[test]
    fn hazards_count_who_is_still_waiting() {
        // Ten reach bucket 1: four are used in it, two are lost and four wait in bucket 3.
        let mut counts = AgeCounts::new(4);
        counts.used[1] = 4.0;
        counts.lost[1] = 2.0;
        let alive = [0.0, 0.0, 0.0, 4.0];
        let hazards = counts.hazards(&alive, &[0.1; 4], 4.0);
        assert!(close(hazards[0], 0.4 / 14.0));
        assert!(close(hazards[1], 4.4 / 13.0));
        assert!(close(hazards[2], 0.4 / 8.0));
        assert!(close(hazards[3], 0.4 / 6.0));
        // Three of those that wait are watched from bucket 2 on only.
        counts.joined[2] = 3.0;
        let hazards = counts.hazards(&alive, &[0.1; 4], 4.0);
        assert!(close(hazards[0], 0.4 / 11.0));
        assert!(close(hazards[1], 4.4 / 10.0));
        assert!(close(hazards[2], 0.4 / 8.0));
    }

    #[test]
    fn a_class_leans_on_all_until_it_has_its_own() {
        let mut survival = survival(6);
        for _ in 0..1000 {
            survival.used(0, 2);
        }
        let nobody = [vec![0.0; 6], vec![0.0; 6]];
        let chance = |survival: &Survival| survival.fit(&nobody, Worth::Within(1e9)).classes[1][0];
        assert!(chance(&survival) > 0.95);
        for _ in 0..1000 {
            survival.lost(1, 5);
        }
        assert!(chance(&survival) < 0.05);
        survival.fade(0.0);
        assert!(close(chance(&survival), 1.0 - 0.9f64.powi(6)));
    }

    #[test]
    fn a_use_to_come_is_worth_waiting_for_and_not_before() {
        let mut survival = survival(8);
        for _ in 0..1000 {
            survival.used(0, 4);
            survival.lost(0, 7);
        }
        let rates = &survival.fit(&[vec![0.0; 8]], Worth::Rate).classes[0];
        // Half is used from 8 to 16: the nearer, the better, and what is past it is worth little.
        assert!(rates[1] < rates[3] && rates[3] < rates[4]);
        assert!(rates[5] < rates[1] / 10.0);
    }

    proptest! {
        /// Against a search over all horizons.
        #[test]
        fn rates_are_over_the_best_horizon(hazards in prop::collection::vec(0.0f64..=1.0, 1..12)) {
            let survival = survival(hazards.len());
            let rates = survival.rates(&hazards);
            for (from, rate) in rates.iter().enumerate() {
                let (mut used, mut time, mut left, mut best) = (0.0, 0.0, 1.0, 0.0f64);
                for (bucket, hazard) in hazards.iter().enumerate().skip(from) {
                    let now = left * hazard.min(LARGEST_HAZARD);
                    let width = survival.upper_edge(bucket) - survival.edges[bucket] as f64;
                    used += now;
                    time += (left - now / 2.0) * width;
                    left -= now;
                    best = best.max(used / time);
                }
                prop_assert!((rate - best).abs() <= 1e-9 * best);
            }
        }
    }
}
