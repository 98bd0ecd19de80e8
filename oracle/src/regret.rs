//! Where a policy loses against the best feasible schedule, eviction by eviction.

use std::collections::{BTreeMap, HashMap};

use cache::Track;
use policy_api::{Candidate, Inspect, Policy, PolicyCall};

use crate::bracket::OracleOptions;
use crate::intervals::{NEVER, Time};
use crate::oracle::Oracle;
use crate::priced_trace::PricedTrace;
use crate::record::{Evictions, EvictionsBy, Loss, Regret};
use crate::schedule::replay_in;

impl Oracle<'_> {
    /// Replays a policy and compares it, eviction by eviction, with the best feasible schedule of the same capacity. The
    /// policy sees the trace's hints only on the declared track.
    ///
    /// For models whose KV is per token: what an evicted state would have saved is not told apart yet.
    pub fn regret(
        &self,
        capacity_bytes: u64,
        policy: &mut dyn Policy,
        track: Track,
        options: &OracleOptions,
    ) -> Regret {
        let trace = self.trace();
        let mut evictions = Vec::new();
        let mut time = 0;
        let mut watched =
            Inspect::new(
                policy,
                |_: &mut &mut dyn Policy, call: PolicyCall<'_>| match call {
                    PolicyCall::Observe { request, .. } => time = request.index.0,
                    PolicyCall::Evicted { part, .. } => {
                        evictions.push(EvictedPart { time, part: *part });
                    }
                    _ => (),
                },
            );
        let config = self.cache_config(capacity_bytes);
        let served = replay_in(trace.workload, config, trace.cost, track, &mut watched);
        let (_, schedule) = self.search(capacity_bytes, options);
        let mut tally = Tally::new(trace, &schedule);
        for evicted in &evictions {
            tally.add(evicted);
        }
        let (ahead, lucky) = differences(trace, &schedule, &served);
        let premature = Loss {
            blocks: tally.total.premature_blocks,
            seconds: tally.total.premature_seconds,
        };
        Regret {
            oracle: trace.recovered(&schedule),
            policy: trace.recovered(&served),
            premature,
            rejected: Loss {
                blocks: ahead.blocks - premature.blocks,
                seconds: (ahead.seconds - premature.seconds).max(0.0),
            },
            lucky,
            evictions: tally.total,
            by: tally.rows(),
        }
    }
}

/// The hits that the first has and the second has not, and the other way round.
fn differences(trace: &PricedTrace<'_>, first: &[u32], second: &[u32]) -> (Loss, Loss) {
    let (mut ahead, mut behind) = (Loss::default(), Loss::default());
    let measured = (0..)
        .zip(first.iter().zip(second))
        .skip(trace.warmup_requests);
    for (time, (first, second)) in measured {
        let loss = if first > second {
            &mut ahead
        } else {
            &mut behind
        };
        loss.blocks += u64::from(first.abs_diff(*second));
        loss.seconds += (trace.saved(time, *first) - trace.saved(time, *second)).abs();
    }
    (ahead, behind)
}

/// Blocks that an eviction took from the tail of a node.
struct EvictedPart {
    time: Time,
    part: Candidate,
}

/// Classes evictions and adds them up.
struct Tally<'a> {
    trace: &'a PricedTrace<'a>,
    /// Hit blocks of the schedule, by request.
    schedule: &'a [u32],
    /// The last request of each session.
    session_ends: HashMap<u64, Time>,
    total: Evictions,
    buckets: BTreeMap<(Dimension, u32), Evictions>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Dimension {
    Depth,
    Age,
    Kind,
    Session,
}

impl<'a> Tally<'a> {
    fn new(trace: &'a PricedTrace<'a>, schedule: &'a [u32]) -> Self {
        let requests = trace.workload.requests();
        let session_ends = (0..)
            .zip(requests)
            .map(|(time, request)| (request.session_id, time));
        Self {
            trace,
            schedule,
            session_ends: session_ends.collect(),
            total: Evictions::default(),
            buckets: BTreeMap::new(),
        }
    }

    /// Divides an eviction, from its tail up, where the class or the bucket of depth changes.
    fn add(&mut self, evicted: &EvictedPart) {
        let EvictedPart { time, part } = evicted;
        let age = time - part.last_request.0;
        let ended = self.session_ends[&part.last_session] <= *time;
        let mut end = part.depth_blocks + part.blocks;
        while end > part.depth_blocks {
            let next = self.trace.next_use.after(part.last_request.0, end - 1);
            let kept = match next.time {
                NEVER => 0,
                time => self.schedule[time as usize],
            };
            let depth = Bucket::of(end - 1);
            let class_from = if kept < end { kept } else { 0 };
            let from = part.depth_blocks.max(next.first_block);
            let from = from.max(class_from).max(depth.least());
            let evictions = self.class(next.time, from, end, kept, age);
            self.total.add(&evictions);
            for key in [
                (Dimension::Depth, depth.0),
                (Dimension::Age, Bucket::of(age).0),
                (Dimension::Kind, u32::from(part.last_kind)),
                (Dimension::Session, u32::from(ended)),
            ] {
                self.buckets.entry(key).or_default().add(&evictions);
            }
            end = from;
        }
    }

    /// The blocks from `from` to `end` of a path, reused at `next`, when the schedule hits `kept` of that path.
    fn class(&self, next: Time, from: u32, end: u32, kept: u32, age: u32) -> Evictions {
        let blocks = u64::from(end - from);
        let mut evictions = Evictions::default();
        if next == NEVER {
            evictions.dead_weight_blocks = blocks;
            evictions.dead_weight_block_requests = blocks * u64::from(age);
        } else if kept >= end {
            evictions.premature_blocks = blocks;
            evictions.premature_seconds =
                self.trace.saved(next, end) - self.trace.saved(next, from);
        } else {
            evictions.unaffordable_blocks = blocks;
        }
        evictions
    }

    fn rows(&self) -> Vec<EvictionsBy> {
        let row = |((dimension, bucket), evictions): (&(Dimension, u32), &Evictions)| EvictionsBy {
            dimension: dimension.name(),
            bucket: self.label(*dimension, *bucket),
            evictions: *evictions,
        };
        self.buckets.iter().map(row).collect()
    }

    fn label(&self, dimension: Dimension, bucket: u32) -> String {
        let text = match (dimension, bucket) {
            (Dimension::Depth | Dimension::Age, bucket) => return Bucket(bucket).label(),
            (Dimension::Kind, kind) => match self.trace.workload.kinds().get(kind as usize) {
                Some(name) if !name.is_empty() => name,
                _ => "not said",
            },
            (Dimension::Session, 0) => "goes on",
            (Dimension::Session, _) => "has ended",
        };
        text.to_owned()
    }
}

impl Dimension {
    fn name(self) -> &'static str {
        match self {
            Self::Depth => "depth_blocks",
            Self::Age => "age_requests",
            Self::Kind => "kind",
            Self::Session => "session",
        }
    }
}

impl Evictions {
    fn add(&mut self, more: &Self) {
        self.premature_blocks += more.premature_blocks;
        self.premature_seconds += more.premature_seconds;
        self.unaffordable_blocks += more.unaffordable_blocks;
        self.dead_weight_blocks += more.dead_weight_blocks;
        self.dead_weight_block_requests += more.dead_weight_block_requests;
    }
}

/// Numbers by powers of four: 0, 1-3, 4-15, 16-63 and so on.
#[derive(Clone, Copy)]
struct Bucket(u32);

impl Bucket {
    fn of(number: u32) -> Self {
        Self(number.checked_ilog(4).map_or(0, |power| power + 1))
    }

    fn least(self) -> u32 {
        self.0.checked_sub(1).map_or(0, |power| 4_u32.pow(power))
    }

    fn label(self) -> String {
        match self.0 {
            0 => "0".to_owned(),
            power => format!("{}-{}", self.least(), 4_u64.pow(power) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_four() {
        for (number, label) in [
            (0, "0"),
            (1, "1-3"),
            (3, "1-3"),
            (4, "4-15"),
            (1024, "1024-4095"),
        ] {
            assert_eq!(Bucket::of(number).label(), label);
            assert!(Bucket::of(number).least() <= number);
        }
        assert_eq!(Bucket::of(u32::MAX).label(), "1073741824-4294967295");
    }
}
