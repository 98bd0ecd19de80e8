//! Plain records in; tables, JSON and CSV out.
//!
//! What this crate does not know: how anything was measured, files, and the terminal.

mod csv_form;
mod markdown;
mod numbers;
mod oracle_table;
mod plain;
mod run_table;

use replay::Report;
use serde::Serialize;

pub use csv_form::csv;
pub use markdown::run_markdown;
pub use numbers::{bytes, grouped, percent};
pub use oracle_table::{curve_table, oracle_table, regret_csv, regret_table};
pub use run_table::run_table;

/// Any record as one JSON object, indented, with a final newline.
pub fn json(record: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(record);
    text.expect("records have string keys only, so they are always JSON") + "\n"
}

/// A report's runs as CSV: a header, then a line a run. Nested fields are joined by a point.
pub fn runs_csv(report: &Report) -> String {
    csv(&report.runs)
}
