//! A recorded run of a real engine: 300 requests through vLLM on one RTX PRO 6000, from arrival to last token.
//!
//! Nothing is fitted to it. The loop below schedules as that engine does (decodes first, then prefill chunks up to the
//! token budget, in order of arrival) and takes its step times from the kernels' calibration.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::VecDeque;
use std::path::Path;

use roofline::{Calibration, Deployment, Gpu, KernelTiming, Model, PrefillChunk};
use serde::Deserialize;

/// `max_num_batched_tokens` and `max_num_seqs` of the run.
const STEP_TOKENS: u64 = 2048;
const MOST_SEQUENCES: usize = 128;

#[derive(Deserialize)]
struct Recorded {
    input_toks: u64,
    output_toks: u64,
    queued_ts: f64,
    first_token_ts: f64,
    last_token_ts: f64,
}

struct RunningRequest {
    request: usize,
    prefilled: u64,
    decoded: u64,
}

/// Seconds after the first arrival.
#[derive(Clone, Copy, Default)]
struct TokenTimes {
    first: f64,
    last: f64,
}

/// When each request got its first and its last token.
fn simulate(requests: &[Recorded], deployment: &Deployment) -> Vec<TokenTimes> {
    let start = requests[0].queued_ts;
    let mut waiting: VecDeque<usize> = (0..requests.len()).collect();
    let mut running: Vec<RunningRequest> = Vec::new();
    let mut times = vec![TokenTimes::default(); requests.len()];
    let mut now = 0.0;
    while !(waiting.is_empty() && running.is_empty()) {
        let arrived = |request: usize| requests[request].queued_ts - start <= now;
        while running.len() < MOST_SEQUENCES && waiting.front().is_some_and(|r| arrived(*r)) {
            let request = waiting.pop_front().unwrap();
            running.push(RunningRequest {
                request,
                prefilled: 0,
                decoded: 0,
            });
        }
        if running.is_empty() {
            now = requests[waiting[0]].queued_ts - start;
            continue;
        }
        now += step(requests, &mut running, deployment);
        for r in &running {
            if r.decoded == 1 && times[r.request].first == 0.0 {
                times[r.request].first = now;
            }
        }
        running.retain(|r| {
            let done = r.decoded >= requests[r.request].output_toks;
            if done {
                times[r.request].last = now;
            }
            !done
        });
    }
    times
}

/// Runs one step and returns its seconds.
fn step(requests: &[Recorded], running: &mut [RunningRequest], deployment: &Deployment) -> f64 {
    let in_prefill = |r: &RunningRequest| r.prefilled < requests[r.request].input_toks;
    let decoding = running.iter().filter(|r| !in_prefill(r));
    let contexts: Vec<u64> = decoding.map(|r| r.prefilled + r.decoded).collect();
    let sequences = contexts.len() as u64;
    let context = contexts.iter().sum::<u64>() / sequences.max(1);
    let mut budget = STEP_TOKENS - sequences;
    let mut chunks = Vec::new();
    for r in running.iter_mut() {
        let left = requests[r.request].input_toks - r.prefilled;
        if left == 0 {
            r.decoded += 1;
            continue;
        }
        let chunk = left.min(budget);
        if chunk > 0 {
            chunks.push(PrefillChunk {
                new_tokens: chunk,
                cached_tokens: r.prefilled,
            });
        }
        budget -= chunk;
        r.prefilled += chunk;
        // The last chunk of a prompt yields the first token.
        r.decoded += u64::from(chunk > 0 && chunk == left);
    }
    deployment
        .step_time(&chunks, sequences, context)
        .total
        .seconds
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn time_to_first_token_and_length_of_a_vllm_run() {
    let path = Path::new(
        "../../shared/data/llmservingsim/rtxpro6000_Llama-3.1-8B_vllm_run_requests.jsonl",
    );
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no ../shared");
        return;
    };
    let mut requests: Vec<Recorded> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    requests.sort_by(|a, b| a.queued_ts.total_cmp(&b.queued_ts));
    let (model, gpu) = (
        Model::named("llama-3-8b").unwrap(),
        Gpu::named("rtx-pro-6000").unwrap(),
    );
    let calibration = Calibration::named("rtx-pro-6000-vllm").unwrap();
    let timing = KernelTiming::Calibrated(&calibration);
    let deployment = Deployment {
        model: &model,
        gpu: &gpu,
        gpus: 1,
        timing,
    };
    let simulated = simulate(&requests, &deployment);

    let start = requests[0].queued_ts;
    let end = |times: &mut dyn Iterator<Item = f64>| times.fold(0.0, f64::max);
    let measured_seconds = end(&mut requests.iter().map(|r| r.last_token_ts - start));
    let simulated_seconds = end(&mut simulated.iter().map(|t| t.last));
    let measured_ttft_seconds = mean(requests.iter().map(|r| r.first_token_ts - r.queued_ts));
    let simulated_ttft_seconds = mean(
        requests
            .iter()
            .zip(&simulated)
            .map(|(r, t)| t.first - (r.queued_ts - start)),
    );
    println!("run {measured_seconds:.1} s, simulated {simulated_seconds:.1}");
    println!("mean TTFT {measured_ttft_seconds:.2} s, simulated {simulated_ttft_seconds:.2}");
    // The kernels alone: scheduling, sampling and the gaps between launches come on top in the engine.
    assert!(simulated_seconds < measured_seconds && simulated_seconds > 0.85 * measured_seconds);
    assert!(
        simulated_ttft_seconds < measured_ttft_seconds
            && simulated_ttft_seconds > 0.7 * measured_ttft_seconds
    );
}
