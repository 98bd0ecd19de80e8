//! How long pricing one prompt takes: replay asks twice per request.

#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use roofline::{COST_MODELS, CostEntry, Gpu, Model, cost_model};

fn prefill(criterion: &mut Criterion) {
    let gpu = Gpu::named("h100").unwrap();
    for model in ["llama-3-8b", "deepseek-v3", "jamba-v0.1"] {
        let model = Model::named(model).unwrap();
        for CostEntry { name, .. } in COST_MODELS {
            let cost = cost_model(name, &model, &gpu).unwrap();
            criterion.bench_function(&format!("{name}/{}", model.name), |bench| {
                bench.iter(|| cost.cost.prefill(black_box(50_000), black_box(45_000)));
            });
        }
        criterion.bench_function(&format!("build/{}", model.name), |bench| {
            bench.iter(|| cost_model("roofline", black_box(&model), &gpu).unwrap());
        });
    }
}

criterion_group!(benches, prefill);
criterion_main!(benches);
