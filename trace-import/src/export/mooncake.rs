//! Mooncake's JSON lines.

use std::io::Write;

use serde_json::{Number, Value, json};
use trace::{LoadOptions, load};

use super::target::{Export, ExportFormat};
use crate::error::ImportError;

pub(super) static FORMAT: ExportFormat = ExportFormat {
    name: "mooncake",
    about: "Mooncake's JSON lines: timestamp (ms), input_length, output_length, hash_ids.",
    details: "\
Ids are dense, in order of first touch; a partial last block gets an id of its own that never comes again, as the trace
does not know it. Times that are no whole milliseconds become fractions. Sessions, kinds, tools, hints and the blocks of
outputs are lost. A trace of tokens is cut into blocks of --block-tokens.",
    write,
};

fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<u64, ImportError> {
    let options = LoadOptions {
        block_tokens: export.block_tokens,
        ..LoadOptions::default()
    };
    let workload = load(export.trace, &options)?.workload;
    let mut next_id = u64::from(workload.distinct_blocks());
    for request in workload.requests() {
        let path = &workload.path(request)[..request.prompt_blocks as usize];
        let mut ids: Vec<u64> = path.iter().map(|&id| u64::from(id.0)).collect();
        if !request
            .prompt_tokens
            .is_multiple_of(workload.block_tokens())
        {
            ids.push(next_id);
            next_id += 1;
        }
        let line = json!({
            "timestamp": milliseconds(request.arrival_us),
            "input_length": request.prompt_tokens,
            "output_length": request.output_tokens,
            "hash_ids": ids,
        });
        writeln!(out, "{line}").map_err(|fault| ImportError::io(export.out, fault))?;
    }
    Ok(workload.requests().len() as u64)
}

fn milliseconds(us: i64) -> Value {
    match us % 1_000 {
        0 => Value::from(us / 1_000),
        _ => Number::from_f64(us as f64 / 1e3).map_or(Value::Null, Value::Number),
    }
}
