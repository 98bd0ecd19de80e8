//! The golden cases as workloads, and the reference cost models by name.

#![allow(clippy::unwrap_used, reason = "only tests use it, and a test may fail")]

use std::fs;
use std::path::PathBuf;

use roofline::{Gpu, Model, PricedCost};
use serde_json::Value;
use trace::{Provenance, Request, Workload, WorkloadBuilder};
use xxhash_rust::xxh3::xxh3_64;

/// A case with known answers.
pub struct Golden {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub workload: Workload,
    /// What is true of the trace itself.
    pub facts: Value,
    /// The right answers.
    pub expected: Value,
}

/// A cost model of the reference model and GPU.
///
/// # Panics
/// If there is none of that name.
pub fn cost(name: &str) -> PricedCost {
    roofline::cost_model(
        name,
        &Model::named("course-7b").unwrap(),
        &Gpu::named("course-h100").unwrap(),
    )
    .unwrap()
}

/// All golden cases, in order of their names; `None` where there are none.
///
/// # Panics
/// If a case is not well formed.
pub fn golden_cases() -> Option<Vec<Golden>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: no ../shared");
        return None;
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    Some(
        files
            .iter()
            .map(|path| read(&fs::read_to_string(path).unwrap()))
            .collect(),
    )
}

fn read(text: &str) -> Golden {
    let case: Value = serde_json::from_str(text).unwrap();
    let block_tokens = case["page_size"].as_u64().unwrap() as u32;
    let mut builder = WorkloadBuilder::new(block_tokens);
    for request in case["requests"].as_array().unwrap() {
        let row = match case["form"].as_str().unwrap() {
            "tokens" => from_tokens(request, block_tokens),
            "blocks" => from_blocks(request, block_tokens),
            _ => from_mooncake(request, block_tokens),
        };
        builder.push(row.request, &row.path).unwrap();
    }
    Golden {
        name: case["name"].as_str().unwrap().to_owned(),
        workload: builder.finish(Provenance::default()),
        facts: case["facts"].clone(),
        expected: case["expected"].clone(),
    }
}

struct Row {
    request: Request,
    path: Vec<u64>,
}

fn row(prompt_tokens: u32, output_tokens: u32, block_tokens: u32, path: Vec<u64>) -> Row {
    let request = Request {
        request_id: 0,
        arrival_us: 0,
        session_id: 0,
        parent_request: None,
        step: 0,
        kind: 0,
        tool: None,
        tenant: 0,
        prompt_tokens,
        output_tokens,
        path_start: 0,
        path_blocks: 0,
        prompt_blocks: prompt_tokens / block_tokens,
        seen_blocks: 0,
    };
    Row { request, path }
}

fn from_tokens(request: &Value, block_tokens: u32) -> Row {
    let tokens = |list: &Value| {
        list.as_array()
            .map(|tokens| tokens.iter().map(|t| t.as_u64().unwrap()).collect())
    };
    let mut path: Vec<u64> = tokens(&request["prompt"]).unwrap();
    let prompt_tokens = path.len() as u32;
    let output: Option<Vec<u64>> = tokens(&request["output"]);
    let output_tokens = output.as_ref().map_or(0, Vec::len) as u32;
    if let Some(output) = output {
        path.extend(output);
        path.truncate((prompt_tokens + output_tokens.max(1) - 1) as usize);
    }
    let path = chain(
        path.chunks_exact(block_tokens as usize)
            .map(<[u64]>::to_vec),
    );
    row(prompt_tokens, output_tokens, block_tokens, path)
}

fn from_blocks(request: &Value, block_tokens: u32) -> Row {
    let number = |field: &str| request[field].as_u64().unwrap_or(0) as u32;
    let (prompt_tokens, output_tokens) = (number("prompt_tokens"), number("output_tokens"));
    let known = !request["output_tokens"].is_null();
    let path_tokens = if known {
        prompt_tokens + output_tokens.max(1) - 1
    } else {
        prompt_tokens
    };
    let blocks = request["blocks"].as_array().unwrap();
    let path = chain(blocks.iter().map(|block| vec![block.as_u64().unwrap()]));
    let full = (path_tokens / block_tokens) as usize;
    row(
        prompt_tokens,
        output_tokens,
        block_tokens,
        path[..full].to_vec(),
    )
}

fn from_mooncake(request: &Value, block_tokens: u32) -> Row {
    let number = |field: &str| request[field].as_u64().unwrap() as u32;
    let ids = request["hash_ids"].as_array().unwrap();
    let full = (number("input_length") / block_tokens) as usize;
    let path = ids[..full].iter().map(|id| id.as_u64().unwrap()).collect();
    row(
        number("input_length"),
        number("output_length"),
        block_tokens,
        path,
    )
}

/// Ids that imply their prefix.
fn chain(blocks: impl Iterator<Item = Vec<u64>>) -> Vec<u64> {
    let mut parent = 0;
    blocks
        .map(|block| {
            let bytes: Vec<u8> = [parent]
                .iter()
                .chain(&block)
                .flat_map(|word| word.to_le_bytes())
                .collect();
            parent = xxh3_64(&bytes);
            parent
        })
        .collect()
}
