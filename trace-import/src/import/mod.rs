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
mod format;
mod ids;
mod jsonl;
mod lmcache_agent;
mod mooncake;
mod openai_chat;
mod options;
mod oracle_general;
mod qwen_bailian;
mod ragpulse;
mod sharegpt;
mod sink;
mod source;
mod swe_agent;
mod table;
mod tau_bench;
mod tokens;

pub use format::{ImportFormat, ImportJob};

/// The formats, by name.
pub static FORMATS: &[&ImportFormat] = &[
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

#[cfg(test)]
mod tests {
    use params::Params;

    use super::*;

    #[test]
    fn formats_are_sorted_documented_and_their_defaults_valid() {
        assert!(FORMATS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for format in FORMATS {
            assert!(!format.about.is_empty() && !format.details.is_empty());
            assert!(format.about.len() < 110 && format.about.ends_with('.'));
            for option in format.options {
                assert!(option.help.ends_with('.'), "{}", option.name);
                if !option.default.is_empty() {
                    Params::new(format.options)
                        .set(option.name, option.default)
                        .unwrap();
                }
            }
        }
    }
}
