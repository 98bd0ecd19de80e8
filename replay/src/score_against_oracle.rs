//! Runs against the oracle.

use std::collections::BTreeMap;

use oracle::{BlockMemory, Bracket, Oracle, OracleOptions};
use rayon::prelude::*;

use crate::record::{AgainstOracle, RunRecord};
use crate::run::Scenario;
use crate::sweep::Finished;

/// Adds to each run of a scenario how near it comes to the oracle, which is asked once for every capacity among them.
///
/// The bound holds for every policy and every unit of eviction. `progress` hears of every capacity that is done.
pub fn score_against_oracle(
    scenario: &Scenario<'_>,
    runs: &mut [Finished],
    options: &OracleOptions,
    progress: &(dyn Fn() + Sync),
) {
    let warmup =
        u32::try_from(scenario.baseline.warmup_requests).expect("fewer than 2^32 requests");
    let memory = BlockMemory {
        block_bytes: scenario.block_bytes,
        state: scenario.state,
    };
    let oracle = Oracle::new(
        scenario.workload,
        scenario.cost.cost.as_ref(),
        memory,
        warmup,
    );
    let mut capacities: Vec<_> = runs.iter().map(|run| run.record.capacity_bytes).collect();
    capacities.sort_unstable();
    capacities.dedup();
    let bracket = |capacity_bytes: u64| {
        let bracket = oracle.bracket(capacity_bytes, options);
        progress();
        (capacity_bytes, bracket)
    };
    let mut brackets: BTreeMap<_, _> = capacities.into_par_iter().map(bracket).collect();
    for Finished { record, .. } in runs.iter() {
        if let Some(bracket) = brackets.get_mut(&record.capacity_bytes) {
            let lower = &mut bracket.seconds.lower;
            *lower = lower.max(record.prefill_seconds_recovered);
        }
    }
    for Finished { record, .. } in runs {
        record.against_oracle = Some(against(record, &brackets[&record.capacity_bytes]));
    }
}

fn against(run: &RunRecord, bracket: &Bracket) -> AgainstOracle {
    AgainstOracle {
        capture: bracket.capture(run.prefill_seconds_recovered),
        gap_closed: bracket.gap_closed(run.prefill_seconds_recovered),
        oracle_seconds_upper: bracket.seconds.upper,
        oracle_seconds_lower: bracket.seconds.lower,
        oracle_hit_tokens_upper: bracket.tokens.upper,
    }
}
