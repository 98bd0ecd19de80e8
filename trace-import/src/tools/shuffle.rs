//! Sessions at other times.

use std::collections::BTreeMap;
use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use trace::{Row, TraceReader, TraceWriter};

use super::rows::{Done, Renumber, Roots, made_by};
use crate::error::ImportError;

/// Lets sessions change places: each starts when another one did and goes on at its own pace, with all that its requests
/// started. What is left is what sessions do by themselves; what goes is how they met. The trace is held in memory.
///
/// # Errors
/// Where the trace cannot be read or the output cannot be written.
pub fn shuffle_sessions(input: &Path, out: &Path, seed: u64) -> Result<Done, ImportError> {
    let mut reader = TraceReader::open(input, None)?;
    let meta = made_by(reader.meta(), &format!("shuffle-sessions --seed {seed}"));
    let mut roots = Roots::default();
    let mut rows: Vec<(u64, Row<'static>)> = Vec::new();
    while let Some(row) = reader.next_row()? {
        rows.push((roots.of(&row), row.into_owned()));
    }
    let mut starts = BTreeMap::new();
    for (root, row) in &rows {
        starts.entry(*root).or_insert(row.arrival_us);
    }
    let mut times: Vec<i64> = starts.values().copied().collect();
    times.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let moved: BTreeMap<u64, i64> = starts
        .iter()
        .zip(times)
        .map(|((root, old_us), new_us)| (*root, new_us - old_us))
        .collect();
    for (root, row) in &mut rows {
        row.arrival_us += moved[root];
    }
    rows.sort_by_key(|(_, row)| row.arrival_us);
    let mut writer = TraceWriter::create(out, &meta)?;
    let mut numbers = Renumber::default();
    for (_, row) in &mut rows {
        numbers.apply(row);
        writer.write(row)?;
    }
    Ok(Done {
        read: rows.len() as u64,
        written: writer.finish()?,
    })
}
