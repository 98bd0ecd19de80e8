//! Factors between units.

/// Seconds of a microsecond.
pub(crate) const SECONDS_PER_US: f64 = 1e-6;
