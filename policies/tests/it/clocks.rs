//! Clocks that no server has: they stand still, run backwards, and reach the ends of their range. No policy may loop without
//! bound, overflow, or give a wrong answer for it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cache::{CacheConfig, EvictUnit};
use policy_api::StateBytes;

use crate::under_test::{admissions, evictions, pair_for};
use testkit::{SmallTrace as Trace, ask, config};

/// A policy that has not served a few hundred requests by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

const REQUESTS: u32 = 300;

/// Arrival in seconds by request. The largest floats are the ends of the clock, in microseconds.
type Clock = fn(u32) -> f64;

const CLOCKS: [(&str, Clock); 8] = [
    ("stands still", |_| 0.0),
    ("stands still at its beginning", |_| f64::MIN),
    ("stands still at its end", |_| f64::MAX),
    ("reaches its end", |at| {
        if at < REQUESTS - 50 {
            f64::from(at)
        } else {
            f64::MAX
        }
    }),
    ("leaves its beginning", |at| {
        if at < 50 { f64::MIN } else { f64::from(at) }
    }),
    ("jumps from end to end", |at| {
        if at % 3 == 0 { f64::MIN } else { f64::MAX }
    }),
    ("runs backwards", |at| -1e6 * f64::from(at)),
    ("falls now and then", |at| {
        f64::from(at) - if at % 7 == 0 { 1e9 } else { 0.0 }
    }),
];

/// Sessions that call tools and grow, and single requests between them.
fn trace(arrival_seconds: Clock) -> Trace {
    let asks: Vec<_> = (0..REQUESTS)
        .map(|at| {
            let session = u64::from(at % 7);
            let turn = (at / 7 % 5) as usize;
            let path = if at % 4 == 3 {
                char::from_u32(0x4e00 + at).into_iter().collect()
            } else {
                ["ab", "ac", "b", "cd", "ce", "de", "f"][session as usize].repeat(turn + 1)
            };
            let ask = ask(&path)
                .session(session, turn as u32)
                .kind((at % 3) as u16);
            let ask = if at % 2 == 0 { ask.tool(1) } else { ask };
            ask.at_seconds(arrival_seconds(at))
        })
        .collect();
    Trace::new(&asks)
}

/// Every eviction policy with `all`, and every admission policy with `lru` and `cost-aware`.
fn pairs() -> Vec<(String, String)> {
    let beside_all = |eviction| (eviction, "all".to_owned());
    let mut pairs: Vec<_> = evictions().into_iter().map(beside_all).collect();
    for admission in admissions() {
        pairs.push(("lru".to_owned(), admission.clone()));
        pairs.push(("cost-aware".to_owned(), admission));
    }
    pairs
}

fn serve(trace: &Trace, config: CacheConfig, (eviction, admission): &(String, String)) {
    let mut policy = pair_for(eviction, admission, config);
    let mut cache = trace.cache_of(config);
    for index in 0..trace.requests.len() {
        trace.serve(index, &mut cache, &mut policy);
    }
    assert_eq!(cache.audit(), Ok(()), "{eviction} with {admission}");
    assert_eq!(cache.first_fault(), None, "{eviction} with {admission}");
}

#[test]
fn no_clock_keeps_a_policy_from_answering() {
    let (progress, served) = mpsc::channel();
    let worker = thread::spawn(move || {
        let state = StateBytes {
            fixed: 3,
            per_token: 1,
            window_tokens: 2,
        };
        for (clock, arrival_seconds) in CLOCKS {
            let trace = trace(arrival_seconds);
            for pair in pairs() {
                progress
                    .send((clock, pair.clone()))
                    .expect("somebody waits");
                serve(&trace, config(20, EvictUnit::Block, None), &pair);
                serve(&trace, config(60, EvictUnit::Block, Some(state)), &pair);
            }
        }
    });
    let mut present = None;
    loop {
        match served.recv_timeout(PATIENCE) {
            Ok(next) => present = Some(next),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("does not end: {present:?}"),
        }
    }
    assert!(worker.join().is_ok(), "failed: {present:?}");
}
