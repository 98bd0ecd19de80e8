//! Tables without lines, and what every table begins with.

use comfy_table::{CellAlignment, Table, presets};
use replay::TraceRecord;

use crate::numbers::grouped;

/// Columns side by side, the first `words` of them to the left, numbers to the right.
pub(crate) fn plain(header: &[&str], rows: Vec<Vec<String>>, words: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// What a trace holds, in two lines.
pub(crate) fn trace_line(trace: &TraceRecord) -> String {
    format!(
        "{}: {} requests, {} prompt tokens\n{} block touches, {} distinct blocks of {} tokens\n",
        trace.path,
        grouped(trace.requests as u64),
        grouped(trace.prompt_tokens),
        grouped(trace.blocks),
        grouped(u64::from(trace.distinct_blocks)),
        trace.block_tokens,
    )
}
