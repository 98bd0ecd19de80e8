//! Exporters into other people's formats, one file each, and their registry.

mod jsonl;
mod mooncake;
mod oracle_general;
mod target;

pub use target::{Export, ExportFormat};

/// The formats, by name.
pub static EXPORT_FORMATS: &[&ExportFormat] =
    &[&jsonl::FORMAT, &mooncake::FORMAT, &oracle_general::FORMAT];
