//! `trace-gen import`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;
use trace_gen::{Imported, agentx, mooncake};

use crate::{Out, progress_bar, report};

#[derive(Subcommand)]
pub(crate) enum Import {
    /// JSON lines with timestamp (ms), input_length, output_length and hash_ids.
    Mooncake {
        /// The JSON lines; may be packed as .zst.
        input: PathBuf,
        #[command(flatten)]
        out: Out,
        /// Tokens of a block.
        #[arg(long, default_value_t = mooncake::BLOCK_TOKENS)]
        block_tokens: u32,
    },
    /// Nested agent sessions, one JSON object each, in a folder of .json files or the lines of a .jsonl; may be packed as
    /// .zst.
    Agentx {
        /// The folder or file.
        input: PathBuf,
        #[command(flatten)]
        out: Out,
        /// Sessions start uniformly over this time: a number with s, m or h.
        #[arg(long, default_value = "4h", value_parser = parse_span_us)]
        span: u64,
        /// Seed of the sessions' starts.
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

pub(crate) fn run(import: Import) -> Result<()> {
    let (imported, out) = match import {
        Import::Mooncake {
            input,
            out,
            block_tokens,
        } => (mooncake::import(&input, &out.out, block_tokens)?, out),
        Import::Agentx {
            input,
            out,
            span,
            seed,
        } => {
            let options = agentx::Options {
                span_us: span,
                seed,
            };
            let bar = progress_bar("files");
            let mut progress = |done: usize, of: usize| {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            };
            let imported = agentx::import(&input, &out.out, &options, &mut progress);
            bar.finish_and_clear();
            (imported?, out)
        }
    };
    let Imported {
        requests,
        sessions,
        notes,
    } = imported;
    report(
        &out.out,
        &format!("{requests} requests, {sessions} sessions"),
    );
    for note in notes {
        eprintln!("  {note}");
    }
    Ok(())
}

fn parse_span_us(text: &str) -> Result<u64, String> {
    let units = [("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
    let parsed = units.iter().find_map(|(unit, us)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * us)
    });
    match parsed {
        Some(us) if us >= 0.0 && us <= agentx::LONGEST_SPAN_US as f64 => Ok(us as u64),
        _ => Err("expected a number with s, m or h, such as 90s, 30m or 4h".to_owned()),
    }
}
