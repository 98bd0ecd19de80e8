//! Plain records in; tables, Markdown, JSON and CSV out.
//!
//! The only crate that draws: every table of every command is declared here, its columns as data.
//!
//! What this crate does not know: how anything was measured, files, and the terminal.

mod csv_form;
mod numbers;
mod oracle_pages;
mod page;
mod policy_matrix;
mod replay_page;
mod roofline_pages;
mod table;
mod trace_pages;

use serde::Serialize;

pub use csv_form::csv;
pub use numbers::{bytes, grouped, percent};
pub use oracle_pages::{brackets_page, curve_page, regret_csv, regret_page};
pub use page::{Page, Section};
pub use policy_matrix::policy_matrix;
pub use replay_page::replay_page;
pub use roofline_pages::{
    CatalogueRow, CostRow, ModelRow, calibrations_page, catalogue_page, costs_page, errors_page,
    explain_page, fetch_page, figures_page, gpus_page, models_page,
};
pub use table::{Align, Column, Table};
pub use trace_pages::{compare_csv, compare_page, inspect_page};

/// Any record as one JSON object, indented, with a final newline.
pub fn json(record: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(record);
    text.expect("records have string keys only, so they are always JSON") + "\n"
}
