//! Importers of other people's formats, one file each, and their registry.
//!
//! To add one, write its file (module docs: what the format is, what it does not say and what is taken instead; the
//! reading; `FORMAT`) and one line in [`FORMATS`]. The command's names, options and help iterate the registry.
//!
//! All of them sort rows by arrival (stable), number them in that order and check them. A row that cannot be used is
//! named by file and line, and then nothing is written. What was kept, changed and dropped is told, and refused where the
//! caller is strict.

mod agentx;
mod aiperf;
mod chat;
mod claude_code;
mod clock;
mod ids;
mod intake;
mod jsonl;
mod lmcache_agent;
mod mooncake;
mod openai_chat;
mod options;
mod oracle_general;
mod qwen_bailian;
mod ragpulse;
mod sharegpt;
mod source;
mod swe_agent;
mod table;
mod tau_bench;
mod tokens;

use std::path::Path;

pub use intake::{Deed, Imported, Note};
pub use options::{Kind, Opt, Values};

use crate::error::GenError;

/// The formats, by name.
pub static FORMATS: &[&Format] = &[
    &agentx::FORMAT,
    &aiperf::FORMAT,
    &table::AZURE,
    &table::BURSTGPT,
    &claude_code::FORMAT,
    &table::CSV,
    &jsonl::FORMAT,
    &lmcache_agent::FORMAT,
    &mooncake::FORMAT,
    &openai_chat::FORMAT,
    &oracle_general::FORMAT,
    &qwen_bailian::FORMAT,
    &ragpulse::FORMAT,
    &sharegpt::FORMAT,
    &swe_agent::FORMAT,
    &tau_bench::FORMAT,
];

/// A format and its importer.
#[derive(Debug)]
pub struct Format {
    /// What the user calls it.
    pub name: &'static str,
    /// One line: what it is.
    pub about: &'static str,
    /// What the reader of the help should know: units, what the ids mean, what is missing and taken instead.
    pub details: &'static str,
    /// What can be chosen.
    pub options: &'static [&'static Opt],
    read: fn(&mut Job<'_>) -> Result<Imported, GenError>,
}

/// One import.
pub struct Job<'a> {
    /// The format.
    pub format: &'static Format,
    /// The file or folder to read.
    pub input: &'a Path,
    /// The trace to write.
    pub out: &'a Path,
    /// Fail rather than change or drop anything.
    pub strict: bool,
    /// The options' values.
    pub values: Values,
    /// Hears how many files are done and to do.
    pub progress: &'a mut dyn FnMut(usize, usize),
}

impl Job<'_> {
    /// Reads the input and writes the trace.
    ///
    /// # Errors
    /// Where the input cannot be read, a row of it cannot be used (all are checked, the first ten named), the caller is
    /// strict and something would be changed or dropped, or the output cannot be written. Nothing is written then.
    pub fn run(&mut self) -> Result<Imported, GenError> {
        (self.format.read)(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_sorted_documented_and_their_defaults_valid() {
        assert!(FORMATS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for format in FORMATS {
            assert!(!format.about.is_empty() && !format.details.is_empty());
            assert!(format.about.len() < 110 && format.about.ends_with('.'));
            Values::new(format, []).unwrap();
            for option in format.options {
                assert!(option.about.ends_with('.'), "{}", option.name);
            }
        }
    }
}
