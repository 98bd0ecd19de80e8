//! Times: units, calendars, and what to do where a format has no clock.

use rand_mt::Mt;

use super::options::{Kind, Opt};

/// Over how long sessions start, for formats without a clock that all sessions share.
pub(crate) static SPAN: Opt = Opt {
    name: "span",
    about: "Sessions start uniformly over this time.",
    kind: Kind::Span,
    default: Some("4h"),
};

/// The seed of the sessions' starts.
pub(crate) static SEED: Opt = Opt {
    name: "seed",
    about: "Seed of the sessions' starts.",
    kind: Kind::Seed,
    default: Some("0"),
};

/// Microseconds of a time in units of `unit_us` microseconds, if it is one that a trace can hold.
pub(crate) fn microseconds(time: f64, unit_us: f64) -> Option<i64> {
    /// Beyond this a float no longer tells microseconds apart: 285 years.
    const LATEST_US: f64 = 9_007_199_254_740_992.0;
    let us = (time * unit_us).round();
    (0.0..=LATEST_US).contains(&us).then_some(us as i64)
}

/// Where sessions start: the draws of `r = random.Random(seed); r.uniform(0, span)` in Python, so that anybody can
/// repeat them (MT19937, seeded by its array method with the 32-bit digits of the seed; floats of 53 bits).
pub(crate) struct Starts {
    draws: Mt,
    span_us: u64,
}

impl Starts {
    pub(crate) fn new(seed: u64, span_us: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        let key = [low, high];
        let digits = if high == 0 { &key[..1] } else { &key[..] };
        Self {
            draws: Mt::new_with_key(digits.iter().copied()),
            span_us,
        }
    }

    /// The next session's start, in microseconds.
    pub(crate) fn next_us(&mut self) -> i64 {
        let (high, low) = (self.draws.next_u32() >> 5, self.draws.next_u32() >> 6);
        let unit = (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0;
        (unit * self.span_us as f64).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python 3 draws: `[round(r.uniform(0, 14400) * 1e6) for _ in range(3)]`.
    #[test]
    fn starts_are_those_of_python() {
        let drawn = |seed| {
            let mut starts = Starts::new(seed, 14_400_000_000);
            [starts.next_us(), starts.next_us(), starts.next_us()]
        };
        assert_eq!(drawn(0), PYTHON_0);
        assert_eq!(drawn(12_345_678_901), PYTHON_BIG);
    }

    const PYTHON_0: [i64; 3] = [12_159_674_662, 10_914_543_402, 6_056_230_764];
    const PYTHON_BIG: [i64; 3] = [13_622_570_150, 4_723_199_365, 5_526_583_245];
}
