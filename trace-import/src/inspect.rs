//! What a trace holds, in figures.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;
use trace::{LoadOptions, Request, Workload, load};

use crate::error::ImportError;

/// The figures of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The file.
    pub path: String,
    /// xxh3 (64 bit) of its bytes, in hexadecimal.
    pub xxh3: String,
    /// `tokens` or `blocks`.
    pub content: &'static str,
    /// Tokens of a block.
    pub block_tokens: u32,
    /// Requests.
    pub requests: u64,
    /// Sessions.
    pub sessions: u64,
    /// From the first to the last arrival, in seconds.
    pub span_seconds: f64,
    /// Prompt tokens of all requests.
    pub prompt_tokens: u64,
    /// Output tokens of all requests.
    pub output_tokens: u64,
    /// Full blocks of all prompts.
    pub prompt_blocks: u64,
    /// Blocks of all paths: those of the prompts, and of the outputs where they are known.
    pub block_touches: u64,
    /// Different blocks among them.
    pub distinct_blocks: u64,
    /// Prompt tokens that a cache of unlimited capacity serves.
    pub infinite_cache_hit_tokens: u64,
    /// Their share of all prompt tokens; `null` where there are none.
    pub infinite_cache_token_hit_rate: Option<f64>,
    /// Prompt tokens of a request.
    pub prompt_tokens_quantiles: Option<Quantiles>,
    /// Output tokens of a request.
    pub output_tokens_quantiles: Option<Quantiles>,
    /// Seconds from one arrival to the next.
    pub gap_seconds_quantiles: Option<Quantiles>,
    /// Seconds from one arrival to the next of the same session.
    pub session_gap_seconds_quantiles: Option<Quantiles>,
}

/// Quantiles by nearest rank: each is a value that occurs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The smallest.
    pub min: f64,
    /// A tenth is at most this.
    pub p10: f64,
    /// Half is at most this.
    pub p50: f64,
    /// Nine tenths are at most this.
    pub p90: f64,
    /// 99% are at most this.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
}

/// Reads the figures of the trace at `path`; `block_tokens` as in [`LoadOptions`].
///
/// # Errors
/// Where the trace cannot be loaded.
pub fn inspect(path: &Path, block_tokens: Option<u32>) -> Result<Summary, ImportError> {
    let loaded = load(
        path,
        &LoadOptions {
            block_tokens,
            ..LoadOptions::default()
        },
    )?;
    let workload = &loaded.workload;
    let requests = workload.requests();
    let total =
        |of: fn(&Request) -> u32| requests.iter().map(|request| u64::from(of(request))).sum();
    let prompt_tokens: u64 = total(|request| request.prompt_tokens);
    let hit_tokens = infinite_cache_hit_tokens(workload);
    let (gaps, session_gaps, sessions) = gaps(requests);
    Ok(Summary {
        path: path.display().to_string(),
        xxh3: format!("{:016x}", loaded.xxh3),
        content: loaded.content.name(),
        block_tokens: workload.block_tokens(),
        requests: requests.len() as u64,
        sessions,
        span_seconds: gaps.iter().sum(),
        prompt_tokens,
        output_tokens: total(|request| request.output_tokens),
        prompt_blocks: total(|request| request.prompt_blocks),
        block_touches: workload.arena().len() as u64,
        distinct_blocks: u64::from(workload.distinct_blocks()),
        infinite_cache_hit_tokens: hit_tokens,
        infinite_cache_token_hit_rate: (prompt_tokens > 0)
            .then(|| hit_tokens as f64 / prompt_tokens as f64),
        prompt_tokens_quantiles: quantiles(lengths(requests, |request| request.prompt_tokens)),
        output_tokens_quantiles: quantiles(lengths(requests, |request| request.output_tokens)),
        gap_seconds_quantiles: quantiles(gaps),
        session_gap_seconds_quantiles: quantiles(session_gaps),
    })
}

/// Prompt tokens that earlier requests left in a cache of unlimited capacity, without the last token of a prompt.
fn infinite_cache_hit_tokens(workload: &Workload) -> u64 {
    let hit = |request: &Request| request.seen_blocks.min(workload.usable_blocks(request));
    let blocks: u64 = workload
        .requests()
        .iter()
        .map(|request| u64::from(hit(request)))
        .sum();
    blocks * u64::from(workload.block_tokens())
}

fn lengths(requests: &[Request], of: fn(&Request) -> u32) -> Vec<f64> {
    requests
        .iter()
        .map(|request| f64::from(of(request)))
        .collect()
}

/// Seconds between arrivals, overall and within sessions, and the number of sessions.
fn gaps(requests: &[Request]) -> (Vec<f64>, Vec<f64>, u64) {
    let seconds = |from_us: i64, to_us: i64| (to_us - from_us) as f64 / 1e6;
    let all = requests
        .windows(2)
        .map(|pair| seconds(pair[0].arrival_us, pair[1].arrival_us))
        .collect();
    let mut last_us = HashMap::new();
    let within = requests
        .iter()
        .filter_map(|request| {
            let before = last_us.insert(request.session_id, request.arrival_us)?;
            Some(seconds(before, request.arrival_us))
        })
        .collect();
    (all, within, last_us.len() as u64)
}

fn quantiles(mut values: Vec<f64>) -> Option<Quantiles> {
    values.sort_by(f64::total_cmp);
    let (&min, &max) = (values.first()?, values.last()?);
    let rank = |share: f64| {
        let rank = (share * values.len() as f64).ceil() as usize;
        values[rank.clamp(1, values.len()) - 1]
    };
    Some(Quantiles {
        min,
        p10: rank(0.1),
        p50: rank(0.5),
        p90: rank(0.9),
        p99: rank(0.99),
        max,
        mean: values.iter().sum::<f64>() / values.len() as f64,
    })
}
