//! Parts of a trace, and the same at another speed.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use trace::{Body, Content, LATEST_ARRIVAL_US, Row, TraceReader};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::rows::{Done, Roots, stream};
use crate::error::ImportError;

/// Which requests to keep: those that all of these let through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    /// Not the first so many requests.
    pub skip: u64,
    /// At most so many.
    pub limit: Option<u64>,
    /// Arrivals from here on, in microseconds.
    pub from_us: Option<i64>,
    /// Arrivals before this, in microseconds.
    pub to_us: Option<i64>,
    /// Move the first kept arrival to 0.
    pub rebase: bool,
}

/// Writes a part of a trace: by place, by time, or both. What a session began with may be gone, as it is to a cache that
/// is watched from then on; declared hints stay what the application declared.
///
/// # Errors
/// Where the trace cannot be read or the output cannot be written.
pub fn cut(input: &Path, out: &Path, cut: &Cut) -> Result<Done, ImportError> {
    let (mut place, mut kept, mut base_us) = (0, 0, None);
    stream(input, out, "cut", |row| {
        let within = place >= cut.skip
            && cut.limit.is_none_or(|limit| kept < limit)
            && cut.from_us.is_none_or(|from| row.arrival_us >= from)
            && cut.to_us.is_none_or(|to| row.arrival_us < to);
        place += 1;
        kept += u64::from(within);
        if within && cut.rebase {
            row.arrival_us -= *base_us.get_or_insert(row.arrival_us);
        }
        Ok(within)
    })
}

/// Which sessions to keep.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// Probability of a session, above 0 and at most 1.
    pub share: f64,
    /// Seed of the draw.
    pub seed: u64,
    /// What counts as a session.
    pub by: By,
    /// Keep those that are not drawn instead.
    pub rest: bool,
}

/// What is kept or left out as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A session, with all that its requests started.
    Session,
    /// The requests that have their first rare block in common: one that at most a hundredth of all requests have. For traces of
    /// blocks that do not know their sessions; what more requests share is taken for a template.
    Prefix,
}

/// Keeps each session with probability `share`, whole. Which ones follows from the seed and the session's id alone, so the
/// sample is unbiased by length or time, a larger share keeps a superset, and a sample and its rest are the whole.
/// A fair comparison needs a cache of `share` times the capacity.
///
/// # Errors
/// Where the share is not above 0 and at most 1, a trace of tokens or one that knows its sessions is to be drawn by prefix, the
/// trace cannot be read or the output cannot be written.
pub fn sample(input: &Path, out: &Path, draw: &Draw) -> Result<Done, ImportError> {
    let Draw { share, seed, .. } = *draw;
    if !(share > 0.0 && share <= 1.0) {
        return Err(ImportError::Parameter {
            name: "share of sessions",
            found: share.to_string(),
            expected: "above 0 and at most 1".to_owned(),
        });
    }
    let mut roots = Roots::default();
    let prefixes = match draw.by {
        By::Session => None,
        By::Prefix => Some(Prefixes::of(input)?),
    };
    let by = if prefixes.is_some() {
        " --by prefix"
    } else {
        ""
    };
    let rest = if draw.rest { " --rest" } else { "" };
    stream(
        input,
        out,
        &format!("sample --share {share} --seed {seed}{by}{rest}"),
        |row| {
            let root = match &prefixes {
                None => roots.of(row),
                Some(prefixes) => prefixes.root(row),
            };
            let drawn = xxh3_64_with_seed(&root.to_le_bytes(), seed);
            Ok(((drawn as f64) < share * 2_f64.powi(64)) != draw.rest)
        },
    )
}

/// How many requests have each block.
struct Prefixes {
    requests: HashMap<u64, u64>,
    most: u64,
}

impl Prefixes {
    fn of(input: &Path) -> Result<Self, ImportError> {
        let by_session = |why: &str| ImportError::Parameter {
            name: "by",
            found: "prefix".to_owned(),
            expected: format!("session, for a trace {why}"),
        };
        let mut reader = TraceReader::open(input, None)?;
        if reader.meta().content == Content::Tokens {
            return Err(by_session("of tokens"));
        }
        let (mut requests, mut read) = (HashMap::new(), 0);
        let mut sessions = HashSet::new();
        while let Some(row) = reader.next_row()? {
            read += 1;
            if !sessions.insert(row.session_id) {
                return Err(by_session(
                    "that knows its sessions: one has several requests",
                ));
            }
            for block in prompt_ids(&row) {
                *requests.entry(*block).or_default() += 1;
            }
        }
        let most = (read / RARE).max(1);
        Ok(Self { requests, most })
    }

    /// The row's first rare block, its last one if there is none, its session if it has none at all.
    fn root(&self, row: &Row<'_>) -> u64 {
        let ids = prompt_ids(row);
        let is_rare = |id: &&u64| {
            self.requests
                .get(*id)
                .is_none_or(|count| *count <= self.most)
        };
        let root = ids.iter().find(is_rare).or(ids.last());
        root.copied().unwrap_or(row.session_id)
    }
}

/// A block is rare if at most one in so many requests has it.
const RARE: u64 = 100;

fn prompt_ids<'r>(row: &'r Row<'_>) -> &'r [u64] {
    match &row.body {
        Body::Blocks { prompt, .. } => prompt,
        Body::Tokens { .. } => &[],
    }
}

/// Multiplies all times by `factor`: below 1 the same requests come faster.
///
/// # Errors
/// Where the factor is not positive, a time becomes too long, the trace cannot be read or the output cannot be written.
pub fn rescale_time(input: &Path, out: &Path, factor: f64) -> Result<Done, ImportError> {
    let refused = |found: String, expected: &str| ImportError::Parameter {
        name: "factor of time",
        found,
        expected: expected.to_owned(),
    };
    if !(factor > 0.0 && factor.is_finite()) {
        return Err(refused(factor.to_string(), "above 0"));
    }
    stream(
        input,
        out,
        &format!("rescale-time --factor {factor}"),
        |row| {
            let at_us = row.arrival_us as f64 * factor;
            if at_us > LATEST_ARRIVAL_US as f64 {
                return Err(refused(
                    factor.to_string(),
                    "one that leaves all arrivals within 285 years",
                ));
            }
            row.arrival_us = at_us.round() as i64;
            if let Some(ttl_us) = &mut row.hints.priority_ttl_us {
                *ttl_us = (*ttl_us as f64 * factor).round() as u64;
            }
            Ok(true)
        },
    )
}
