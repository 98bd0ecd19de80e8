//! Parts of a trace, and the same at another speed.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Done, Roots, stream};
use crate::error::GenError;

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
pub fn cut(input: &Path, out: &Path, cut: &Cut) -> Result<Done, GenError> {
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

/// Keeps each session with probability `share`, whole, with all that its requests started. Which ones follows from the
/// seed and the session's id alone, so the sample is unbiased by length or time, and a larger share keeps a superset.
/// A fair comparison needs a cache of `share` times the capacity.
///
/// # Errors
/// Where the share is not above 0 and at most 1, the trace cannot be read or the output cannot be written.
pub fn sample(input: &Path, out: &Path, share: f64, seed: u64) -> Result<Done, GenError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(GenError::Parameter {
            name: "share of sessions",
            found: share.to_string(),
            expected: "above 0 and at most 1".to_owned(),
        });
    }
    let mut roots = Roots::default();
    stream(
        input,
        out,
        &format!("sample --share {share} --seed {seed}"),
        |row| {
            let root = roots.of(row);
            let drawn = xxh3_64_with_seed(&root.to_le_bytes(), seed);
            Ok((drawn as f64) < share * 2_f64.powi(64))
        },
    )
}

/// Multiplies all times by `factor`: below 1 the same requests come faster.
///
/// # Errors
/// Where the factor is not positive, a time becomes too long, the trace cannot be read or the output cannot be written.
pub fn rescale_time(input: &Path, out: &Path, factor: f64) -> Result<Done, GenError> {
    let refused = |found: String, expected: &str| GenError::Parameter {
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
            /// Beyond this a float no longer tells microseconds apart: 285 years.
            const LATEST_US: f64 = 9_007_199_254_740_992.0;
            let at_us = row.arrival_us as f64 * factor;
            if at_us > LATEST_US {
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
