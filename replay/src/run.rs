//! One run: a trace through one cache under one policy pair.

use std::sync::Arc;
use std::time::Instant;

use cache::{Cache, CacheConfig, EvictUnit, PolicyContext, PolicyFactory, Track};
use roofline::{CostModel, StateBytes};
use trace::{RequestResult, Workload};

use crate::baseline::{Baseline, recovered};
use crate::metrics::{Sums, ratio};
use crate::record::{Ceiling, RunRecord, Timings};

/// What several runs share: a loaded trace, its costs, and the names under which they are reported.
pub struct Scenario<'a> {
    /// The trace's file, as it was named.
    pub trace: &'a str,
    /// The loaded trace.
    pub workload: &'a Workload,
    /// The cost model in force.
    pub cost: &'a Arc<dyn CostModel>,
    /// Costs and ceilings that do not depend on the policy.
    pub baseline: &'a Baseline,
    /// Name of the model.
    pub model: &'a str,
    /// Name of the GPU.
    pub gpu: &'a str,
    /// KV bytes of a block.
    pub block_bytes: u64,
    /// What a saved state weighs, where the model resumes only from one.
    pub state: Option<StateBytes>,
}

/// What distinguishes a run from the others on its scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What evicts and admits.
    pub policy: PolicyFactory,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// What goes at one eviction.
    pub evict_unit: EvictUnit,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether to read the clock.
    pub timings: bool,
}

impl Plan {
    /// Whether a policy of the plan reads declared hints; no other run is shown any.
    fn declared(&self) -> bool {
        self.policy.track() == Track::Declared
    }
}

/// Runs `plan` on `scenario`. `each` hears of every measured request, `progress` of every request.
pub(crate) fn run(
    scenario: &Scenario<'_>,
    plan: &Plan,
    mut each: impl FnMut(RequestResult),
    mut progress: impl FnMut(),
) -> RunRecord {
    let Scenario {
        workload, baseline, ..
    } = *scenario;
    let config = CacheConfig {
        capacity_bytes: plan.capacity_bytes,
        block_bytes: scenario.block_bytes,
        block_tokens: workload.block_tokens(),
        evict_unit: plan.evict_unit,
        state: scenario.state,
    };
    let mut cache = Cache::new(
        config,
        workload.arena(),
        workload.distinct_blocks(),
        scenario.cost.as_ref(),
    );
    let context = PolicyContext {
        cost: Some(scenario.cost.clone()),
        ..PolicyContext::new(config, plan.seed)
    };
    let mut policy = plan.policy.build(&context);
    let mut sums = Sums::default();
    let clock = plan.timings.then(Instant::now);
    for (index, request) in workload.requests().iter().enumerate() {
        let hints = workload.hints(index).filter(|_| plan.declared());
        let outcome = cache.serve(index as u32, request, hints, policy.as_mut());
        progress();
        if index < baseline.warmup_requests {
            continue;
        }
        let cold = baseline.cold[index];
        sums.add(&outcome, cold);
        each(RequestResult {
            request_id: request.request_id,
            hit_tokens: outcome.hit_blocks * config.block_tokens,
            recovered_seconds: recovered(cold, outcome.prefill).seconds,
            ttft_seconds: outcome.prefill.seconds,
        });
    }
    let timings = clock.map(|clock| timings(clock.elapsed().as_secs_f64(), workload));
    let mut record = record(scenario, plan, config, &mut sums);
    record.policy_faults = cache.fault_count();
    record.first_fault = cache
        .first_fault()
        .map(|(index, fault)| format!("request {index}: {fault}"));
    record.timings = timings;
    record
}

fn record(scenario: &Scenario<'_>, plan: &Plan, config: CacheConfig, sums: &mut Sums) -> RunRecord {
    let Baseline {
        cold_total,
        ceiling_recovered,
        prompt_tokens,
        prompt_blocks,
        ..
    } = *scenario.baseline;
    let hit_tokens = sums.hit_blocks * u64::from(config.block_tokens);
    RunRecord {
        trace: scenario.trace.to_owned(),
        policy: plan.policy.eviction().to_owned(),
        admission: plan.policy.admission().to_owned(),
        cost: scenario.cost.name().to_owned(),
        model: scenario.model.to_owned(),
        gpu: scenario.gpu.to_owned(),
        track: plan.policy.track().name(),
        hints_missing: plan.declared() && scenario.workload.hints(0).is_none(),
        evict_unit: match scenario.state {
            None => plan.evict_unit.name(),
            Some(_) => "node",
        },
        seed: plan.seed,
        capacity_bytes: config.capacity_bytes,
        capacity_blocks: config.capacity_blocks(),
        warmup_requests: scenario.baseline.warmup_requests,
        requests: scenario.workload.requests().len() - scenario.baseline.warmup_requests,
        prompt_tokens,
        prompt_blocks,
        hit_tokens,
        hit_blocks: sums.hit_blocks,
        token_hit_rate: ratio(hit_tokens as f64, prompt_tokens as f64),
        block_hit_rate: ratio(sums.hit_blocks as f64, prompt_blocks as f64),
        prefill_seconds_cold: cold_total.seconds,
        prefill_seconds_recovered: sums.recovered.seconds,
        prefill_recovered: ratio(sums.recovered.seconds, cold_total.seconds),
        flops_recovered: sums.recovered.flops,
        ceiling: Ceiling {
            hit_tokens: scenario.baseline.ceiling_hit_tokens,
            token_hit_rate: ratio(
                scenario.baseline.ceiling_hit_tokens as f64,
                prompt_tokens as f64,
            ),
            prefill_seconds_recovered: ceiling_recovered.seconds,
            prefill_recovered: ratio(ceiling_recovered.seconds, cold_total.seconds),
        },
        against_oracle: None,
        ttft_seconds: sums.ttft(),
        admitted_blocks: sums.admitted_blocks,
        rejected_blocks: sums.rejected_blocks,
        evicted_blocks: sums.evicted_blocks,
        churn: ratio(sums.evicted_blocks as f64, sums.admitted_blocks as f64),
        reaccessed_blocks: sums.reaccessed_blocks,
        saved_states: scenario.state.map(|_| sums.saved_states),
        evicted_states: scenario.state.map(|_| sums.evicted_states),
        rounding_lost_tokens: scenario.baseline.rounding_lost_tokens,
        policy_faults: 0,
        first_fault: None,
        timings: None,
    }
}

fn timings(replay_seconds: f64, workload: &Workload) -> Timings {
    Timings {
        replay_seconds,
        request_ns: replay_seconds * 1e9 / workload.requests().len() as f64,
        touches_per_second: workload.arena().len() as f64 / replay_seconds,
    }
}
