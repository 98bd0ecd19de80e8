//! The Mooncake conversation trace, whole, against figures of independent implementations.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use cache::{Cache, CacheConfig, EvictUnit, Replay};
use policies::PolicyContext;
use serde_json::Value;
use trace::{Provenance, Request, Workload, WorkloadBuilder};

use testkit::golden::cost;

const BLOCK_TOKENS: u32 = 512;

/// Which blocks of a prompt the cache keeps.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    /// Full ones, as engines do and as this project does.
    Full,
    /// The partial last one too, and all of them can hit: what the reference simulator does.
    Partial,
}

fn shared(file: &str) -> Option<String> {
    let text = fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../shared/data")
            .join(file),
    );
    if text.is_err() {
        println!("skipped: no ../shared");
    }
    text.ok()
}

/// The trace, and the prompt tokens of every request.
fn conversation(keep: Keep) -> Option<(Workload, Vec<u32>)> {
    let text = shared("mooncake/conversation_trace.jsonl")?;
    let mut builder = WorkloadBuilder::new(BLOCK_TOKENS);
    let mut lengths = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let length = row["input_length"].as_u64().unwrap() as u32;
        let ids: Vec<u64> = row["hash_ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap())
            .collect();
        let (blocks, prompt_tokens) = match keep {
            Keep::Full => (length / BLOCK_TOKENS, length),
            // One token more than the blocks hold, so that the last of them may hit.
            Keep::Partial => (ids.len() as u32, ids.len() as u32 * BLOCK_TOKENS + 1),
        };
        let request = Request {
            prompt_tokens,
            prompt_blocks: blocks,
            ..Request::default()
        };
        builder.push(request, &ids[..blocks as usize]).unwrap();
        lengths.push(length);
    }
    Some((builder.finish(Provenance::default()), lengths))
}

/// Hit blocks of every request.
fn hits(workload: &Workload, policy: &str, capacity_blocks: u64) -> Vec<u32> {
    let config = CacheConfig {
        capacity_bytes: capacity_blocks,
        block_bytes: 1,
        block_tokens: BLOCK_TOKENS,
        evict_unit: EvictUnit::Block,
        state: None,
    };
    let context = PolicyContext::new(config, 0);
    let mut policy = policies::build(
        &policies::eviction(policy).unwrap(),
        &policies::admission("all").unwrap(),
        &context,
    );
    let cost = cost("course");
    let mut cache = Cache::new(
        config,
        workload.arena(),
        workload.distinct_blocks(),
        cost.as_ref(),
    );
    let mut hits = Vec::new();
    let requests = Replay::without_hints(workload.requests());
    cache.replay(requests, &mut policy, |served| {
        hits.push(served.outcome.counters.hit_blocks as u32);
    });
    hits
}

#[test]
fn whole_blocks_over_the_whole_trace() {
    let Some((workload, _)) = conversation(Keep::Full) else {
        return;
    };
    let total = |policy, capacity| hits(&workload, policy, capacity).iter().sum::<u32>();
    assert_eq!(workload.requests().len(), 12_031);
    assert_eq!(
        (workload.arena().len(), workload.distinct_blocks()),
        (276_491, 170_899)
    );
    assert_eq!(total("lru", u64::from(workload.distinct_blocks())), 105_592);
    assert_eq!(total("lru", 32_768), 97_963);
    assert_eq!(total("fifo", 32_768), 97_020);
    assert_eq!(total("fifo", 8_192), 52_980);
}

/// The reference simulator gives the partial last block a slot and counts its tokens as hits when the whole prompt comes
/// again. Told to do the same, our LRU gives its hit tokens to the last one, at every capacity.
#[test]
fn lru_is_that_of_the_reference_simulator_once_partial_blocks_count() {
    let Some((workload, lengths)) = conversation(Keep::Partial) else {
        return;
    };
    let Some(table) = shared("reference-hit-rates/mooncake_conversation.csv") else {
        return;
    };
    let mut checked = 0;
    for row in table.lines().filter(|row| row.starts_with("lru,")) {
        let fields: Vec<u64> = row
            .split(',')
            .skip(1)
            .take(4)
            .map(|field| field.parse().unwrap())
            .collect();
        let (capacity, warmup, expected) = (fields[0], fields[1] as usize, fields[3]);
        let tokens =
            |(blocks, length): (&u32, &u32)| u64::from((blocks * BLOCK_TOKENS).min(*length));
        let hit_tokens: u64 = hits(&workload, "lru", capacity)
            .iter()
            .zip(&lengths)
            .skip(warmup)
            .map(tokens)
            .sum();
        assert_eq!(hit_tokens, expected, "at {capacity} blocks");
        checked += 1;
    }
    assert_eq!(checked, 8);
}

/// The reference's FIFO evicts inner blocks too, and then holds blocks that nothing can hit. Ours keeps the tree closed,
/// so all it holds can hit: it is 2 to 16% better there, at every capacity.
#[test]
fn fifo_parts_from_the_reference_simulator_by_closing_the_tree() {
    let Some((workload, lengths)) = conversation(Keep::Partial) else {
        return;
    };
    let Some(table) = shared("reference-hit-rates/mooncake_conversation.csv") else {
        return;
    };
    let mut ratios = BTreeMap::new();
    for row in table.lines().filter(|row| row.starts_with("fifo,")) {
        let fields: Vec<u64> = row
            .split(',')
            .skip(1)
            .take(4)
            .map(|field| field.parse().unwrap())
            .collect();
        let tokens =
            |(blocks, length): (&u32, &u32)| u64::from((blocks * BLOCK_TOKENS).min(*length));
        let served = hits(&workload, "fifo", fields[0]);
        let ours: u64 = served
            .iter()
            .zip(&lengths)
            .skip(fields[1] as usize)
            .map(tokens)
            .sum();
        ratios.insert(fields[0], ours as f64 / fields[3] as f64);
    }
    println!("our FIFO over the reference's, by capacity: {ratios:.4?}");
    assert_eq!(ratios.len(), 8);
    assert!(
        ratios.values().all(|ratio| (1.01..1.17).contains(ratio)),
        "{ratios:?}"
    );
}
