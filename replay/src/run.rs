//! One run: a trace through one cache under one policy.

use std::time::Instant;

use cache::{Cache, CacheConfig, EvictUnit, Outcome, PolicyContext, PolicyFactory, Replay, Track};
use policy_api::StateBytes;
use roofline::PricedCost;
use trace::{RequestResult, Workload, catch_panic};

use crate::baseline::{Baseline, recovered};
use crate::metrics::{Sums, ratio};
use crate::record::{InfiniteCache, RunRecord, Timings};

/// What several runs share: a loaded trace, its costs, and the names under which they are reported.
#[derive(Clone)]
pub struct Scenario<'a> {
    /// Which of the report's traces it is, from 0.
    pub trace_index: usize,
    /// The trace's file, as it was named.
    pub trace: String,
    /// The loaded trace.
    pub workload: &'a Workload,
    /// The cost model in force.
    pub cost: PricedCost,
    /// Costs and bounds that do not depend on the policy.
    pub baseline: Baseline,
    /// Name of the model.
    pub model: String,
    /// Name of the GPU.
    pub gpu: String,
    /// KV bytes of a block.
    pub block_bytes: u64,
    /// What a saved state weighs, where the model resumes only from one.
    pub state: Option<StateBytes>,
}

impl Scenario<'_> {
    /// The cache of that capacity for the scenario's trace and model.
    pub fn cache(&self, capacity_bytes: u64, evict_unit: EvictUnit) -> CacheConfig {
        CacheConfig {
            capacity_bytes,
            block_bytes: self.block_bytes,
            block_tokens: self.workload.block_tokens(),
            evict_unit,
            state: self.state,
        }
    }

    /// What a policy for that cache is built for.
    pub fn context(&self, cache: CacheConfig, seed: u64) -> PolicyContext {
        PolicyContext {
            cache,
            cost: Some(self.cost.cost.clone()),
            seed,
        }
    }
}

/// What distinguishes a run from the others of its scenario.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// What evicts and admits.
    pub policy: PolicyFactory,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// What is evicted at a time.
    pub evict_unit: EvictUnit,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether to read the clock.
    pub timings: bool,
}

impl RunConfig {
    /// Whether the policy reads declared hints; no other policy is shown any.
    fn reads_hints(&self) -> bool {
        self.policy.track() == Track::Declared
    }
}

/// Runs `config` on `scenario`. `each` hears of every measured request, `progress` of every request.
///
/// A policy that panics ends the run there: the record says at which request and why, and sums what was before.
pub(crate) fn run(
    scenario: &Scenario<'_>,
    config: &RunConfig,
    mut each: impl FnMut(RequestResult),
    mut progress: impl FnMut(),
) -> RunRecord {
    let shape = scenario.cache(config.capacity_bytes, config.evict_unit);
    let workload = scenario.workload;
    let mut cache = Cache::new(
        shape,
        workload.arena(),
        workload.distinct_blocks(),
        scenario.cost.cost.as_ref(),
    );
    let baseline = &scenario.baseline;
    let mut sums = Sums::new(scenario.state.is_some());
    let mut served_requests = 0;
    let clock = config.timings.then(Instant::now);
    let ended = catch_panic(|| {
        let mut policy = config.policy.build(&scenario.context(shape, config.seed));
        let requests = Replay::new(
            workload.requests(),
            workload.all_hints(),
            config.policy.track(),
        );
        cache.replay(requests, policy.as_mut(), |served| {
            let index = served.index.index();
            served_requests = index + 1;
            progress();
            if index >= baseline.warmup_requests {
                let (cold, outcome) = (baseline.cold[index], served.outcome);
                sums.add(&outcome, cold);
                each(RequestResult {
                    request_id: served.request.request_id,
                    hit_tokens: hit_tokens(&outcome, shape) as u32,
                    recovered_seconds: recovered(cold, outcome.prefill).seconds,
                    ttft_seconds: outcome.prefill.seconds,
                });
            }
        });
    });
    let timings = clock.map(|clock| timings(clock.elapsed().as_secs_f64(), workload));
    RunRecord {
        policy_faults: cache.fault_count(),
        first_fault: cache
            .first_fault()
            .map(|(index, fault)| format!("request {index}: {fault}")),
        failure: ended
            .err()
            .map(|why| format!("the policy panicked at request {served_requests}: {why}")),
        timings,
        ..record(scenario, config, shape, &mut sums)
    }
}

fn hit_tokens(outcome: &Outcome, shape: CacheConfig) -> u64 {
    outcome.counters.hit_blocks * u64::from(shape.block_tokens)
}

fn record(
    scenario: &Scenario<'_>,
    config: &RunConfig,
    shape: CacheConfig,
    sums: &mut Sums,
) -> RunRecord {
    let baseline = &scenario.baseline;
    let counters = sums.counters;
    let hit_tokens = counters.hit_blocks * u64::from(shape.block_tokens);
    let cold_seconds = baseline.cold_total.seconds;
    RunRecord {
        trace_index: scenario.trace_index,
        trace: scenario.trace.clone(),
        policy: config.policy.eviction().to_owned(),
        admission: config.policy.admission().to_owned(),
        cost: scenario.cost.name.clone(),
        calibration: scenario.cost.calibration.clone(),
        model: scenario.model.clone(),
        gpu: scenario.gpu.clone(),
        track: config.policy.track().name(),
        hints_missing: config.reads_hints() && scenario.workload.hints(0).is_none(),
        evict_unit: match scenario.state {
            None => config.evict_unit.name(),
            Some(_) => "node",
        },
        seed: config.seed,
        capacity_bytes: shape.capacity_bytes,
        capacity_blocks: shape.capacity_blocks(),
        warmup_requests: baseline.warmup_requests,
        requests: sums.requests(),
        prompt_tokens: baseline.prompt_tokens,
        prompt_blocks: baseline.prompt_blocks,
        hit_tokens,
        token_hit_rate: ratio(hit_tokens as f64, baseline.prompt_tokens as f64),
        block_hit_rate: ratio(counters.hit_blocks as f64, baseline.prompt_blocks as f64),
        prefill_seconds_cold: cold_seconds,
        prefill_seconds_recovered: sums.recovered.seconds,
        prefill_recovered: ratio(sums.recovered.seconds, cold_seconds),
        flops_recovered: sums.recovered.flops,
        ceiling: infinite_cache(baseline),
        ttft_seconds: sums.ttft(),
        churn: ratio(
            counters.evicted_blocks as f64,
            counters.admitted_blocks as f64,
        ),
        counters,
        rounding_lost_tokens: baseline.rounding_lost_tokens,
        ..RunRecord::default()
    }
}

fn infinite_cache(baseline: &Baseline) -> InfiniteCache {
    let hit_tokens = baseline.infinite_cache_hit_tokens;
    let seconds = baseline.infinite_cache_recovered.seconds;
    InfiniteCache {
        hit_tokens,
        token_hit_rate: ratio(hit_tokens as f64, baseline.prompt_tokens as f64),
        prefill_seconds_recovered: seconds,
        prefill_recovered: ratio(seconds, baseline.cold_total.seconds),
    }
}

fn timings(replay_seconds: f64, workload: &Workload) -> Timings {
    Timings {
        replay_seconds,
        request_ns: replay_seconds * 1e9 / workload.requests().len() as f64,
        touches_per_second: workload.arena().len() as f64 / replay_seconds,
    }
}
