//! Block touches per second of the whole replay loop, metrics included, on an agent-shaped stream.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use replay::{Baseline, RunConfig, Scenario, Warmup, sweep};
use roofline::{Gpu, Model, cost_model};
use trace::{Provenance, Request, Workload, WorkloadBuilder};

/// 40,000 requests of about 303 blocks: 800 agents of 50 steps each, interleaved, in 8 applications that share a system prompt.
fn agents() -> Workload {
    const AGENTS: u64 = 800;
    const STEPS: u64 = 50;
    const SYSTEM_BLOCKS: u64 = 125;
    const STEP_BLOCKS: u64 = 7;
    let mut builder = WorkloadBuilder::new(16);
    for round in 0..AGENTS * STEPS {
        // Waves of 100 agents run at a time, so that a cache of a few per cent can hold what is live.
        let wave = round / (100 * STEPS);
        let agent = wave * 100 + round % 100;
        let step = (round % (100 * STEPS)) / 100;
        let blocks = SYSTEM_BLOCKS + STEP_BLOCKS * (step + 1);
        let id = |position: u64| match position {
            0..SYSTEM_BLOCKS => (agent % 8 + 1) << 40 | position,
            _ => (agent + 100) << 40 | position,
        };
        let path: Vec<u64> = (0..blocks).map(id).collect();
        let request = Request {
            request_id: round,
            arrival_us: round as i64,
            session_id: agent,
            step: step as u32,
            prompt_tokens: blocks as u32 * 16,
            prompt_blocks: blocks as u32,
            ..Request::default()
        };
        builder
            .push(request, &path)
            .expect("ids imply their prefix");
    }
    builder.finish(Provenance::default())
}

fn replay_loop(criterion: &mut Criterion) {
    let workload = agents();
    let model = Model::named("course-7b").expect("preset");
    let gpu = Gpu::named("course-h100").expect("preset");
    let cost = cost_model("course", &model, &gpu).expect("preset");
    let scenario = Scenario {
        trace_index: 0,
        trace: "agents".to_owned(),
        workload: &workload,
        baseline: Baseline::new(&workload, cost.cost.as_ref(), Warmup::Requests(0)),
        cost,
        model: String::new(),
        gpu: String::new(),
        block_bytes: 1,
        state: None,
    };
    let mut group = criterion.benchmark_group("agent stream");
    group.throughput(Throughput::Elements(workload.arena().len() as u64));
    group.sample_size(10);
    for percent in [5, 25] {
        for policy in ["lru", "fifo"] {
            let config = RunConfig {
                policy: policies::factory(
                    &policies::eviction(policy).expect("registered"),
                    &policies::admission("all").expect("registered"),
                ),
                capacity_bytes: u64::from(workload.distinct_blocks()) * percent / 100,
                evict_unit: cache::EvictUnit::Block,
                seed: 0,
                timings: false,
            };
            let scenarios = [(scenario.clone(), vec![config])];
            group.bench_function(
                format!("{policy} at {percent}% of distinct blocks"),
                |bencher| bencher.iter(|| black_box(sweep(&scenarios, false, &|_| ()))),
            );
        }
    }
    group.finish();
}

criterion_group!(benches, replay_loop);
criterion_main!(benches);
