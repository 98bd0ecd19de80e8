//! libCacheSim's oracleGeneral records.

use std::io::Write;

use trace::{BlockId, LoadOptions, load};

use super::target::{Export, ExportFormat};
use crate::error::ImportError;

pub(super) static FORMAT: ExportFormat = ExportFormat {
    name: "oracle-general",
    about: "libCacheSim's binary records: every block touched is an access to a flat object.",
    details: "\
24 bytes a record, little-endian: time (u32, whole seconds), object (u64, dense block id in order of first touch), size
(u32, tokens of a block), virtual time of the next access to it (i64, -1 for none). The blocks of a request come leaf
first, so that a flat LRU keeps the beginning of a path longest. That a block is of use only with all before it is lost,
and so are requests, sessions and partial blocks.",
    write,
};

fn write(export: &Export<'_>, out: &mut dyn Write) -> Result<u64, ImportError> {
    let options = LoadOptions {
        block_tokens: export.block_tokens,
        ..LoadOptions::default()
    };
    let workload = load(export.trace, &options)?.workload;
    let mut blocks = Vec::with_capacity(workload.arena().len());
    for request in workload.requests() {
        let time_s =
            u32::try_from(request.arrival_us / 1_000_000).map_err(|_| ImportError::Parameter {
                name: "arrival",
                found: format!("{} us", request.arrival_us),
                expected: "less than 2^32 seconds".to_owned(),
            })?;
        blocks.extend(
            workload
                .path(request)
                .iter()
                .rev()
                .map(|&block| (time_s, block)),
        );
    }
    let next = next_accesses(&blocks, workload.distinct_blocks() as usize);
    for ((time_s, block), next) in blocks.iter().zip(next) {
        let mut record = [0; 24];
        record[..4].copy_from_slice(&time_s.to_le_bytes());
        record[4..12].copy_from_slice(&u64::from(block.0).to_le_bytes());
        record[12..16].copy_from_slice(&workload.block_tokens().to_le_bytes());
        record[16..].copy_from_slice(&next.to_le_bytes());
        out.write_all(&record)
            .map_err(|fault| ImportError::io(export.out, fault))?;
    }
    Ok(blocks.len() as u64)
}

/// For every access, the number of the next one to the same block, counted from 1 as libCacheSim counts; -1 for none.
fn next_accesses(blocks: &[(u32, BlockId)], distinct: usize) -> Vec<i64> {
    let mut coming = vec![-1; distinct];
    let mut next = vec![-1; blocks.len()];
    for (index, &(_, block)) in blocks.iter().enumerate().rev() {
        next[index] = std::mem::replace(&mut coming[block.index()], index as i64 + 1);
    }
    next
}
