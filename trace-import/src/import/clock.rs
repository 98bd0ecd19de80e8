//! Times: units, calendars, and what to do where a format has no clock.

use chrono::{DateTime, NaiveDateTime};
use params::{Domain, Param, Params};
use rand_mt::Mt;
use serde_json::Value;
use trace::LATEST_ARRIVAL_US;

/// Over how long sessions start, for formats without a clock that all sessions share.
pub(crate) const SPAN: Param = Param {
    name: "span",
    help: "Sessions start uniformly over this time.",
    domain: Domain::Duration,
    default: "4h",
};

/// The seed of the sessions' starts.
pub(crate) const SEED: Param = Param {
    name: "seed",
    help: "Seed of the sessions' starts.",
    domain: Domain::Count(0, u64::MAX),
    default: "0",
};

/// Microseconds of a time in units of `unit_us` microseconds, if it is one that a trace can hold.
pub(crate) fn microseconds(time: f64, unit_us: f64) -> Option<i64> {
    let us = (time * unit_us).round();
    (0.0..=LATEST_ARRIVAL_US as f64)
        .contains(&us)
        .then_some(us as i64)
}

/// What a time is counted in.
pub(crate) const TIME_UNIT: Param = Param {
    name: "time-unit",
    help: "What times are counted in, or that they are dates (ISO 8601).",
    domain: Domain::Choice(&["s", "ms", "us", "ns", "date"]),
    default: "s",
};

/// What a time is counted in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// So many microseconds.
    Us(f64),
    /// Dates.
    Date,
}

impl Unit {
    pub(crate) fn new(params: &Params) -> Self {
        match params.get(TIME_UNIT.name) {
            Some("ms") => Self::Us(1e3),
            Some("us") => Self::Us(1.0),
            Some("ns") => Self::Us(1e-3),
            Some("date") => Self::Date,
            _ => Self::Us(1e6),
        }
    }

    /// Microseconds of a time as text.
    pub(crate) fn of_text(self, name: &str, text: &str) -> Result<i64, String> {
        let us = match self {
            Self::Us(unit_us) => text
                .trim()
                .parse()
                .ok()
                .and_then(|time: f64| microseconds(time, unit_us)),
            Self::Date => date_us(text.trim()),
        };
        us.ok_or_else(|| format!("{name} `{text}` is not {}", self.expected()))
    }

    /// Microseconds of a time as JSON number or string.
    pub(crate) fn of_json(self, name: &str, value: &Value) -> Result<i64, String> {
        match value {
            Value::String(text) => self.of_text(name, text),
            other => self.of_text(name, &other.to_string()),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Us(_) => "a time from 0 on in the unit asked for (see --time-unit)",
            Self::Date => "a date and time from 1970 on, such as 2023-11-16 18:17:03.97",
        }
    }
}

/// Microseconds since 1970 of a date and time, in UTC where it names no zone.
pub(crate) fn date_us(text: &str) -> Option<i64> {
    let zoned = DateTime::parse_from_rfc3339(text).map(|date| date.timestamp_micros());
    let us = zoned.or_else(|_| {
        let plain = text.replace('T', " ");
        NaiveDateTime::parse_from_str(&plain, "%Y-%m-%d %H:%M:%S%.f")
            .map(|date| date.and_utc().timestamp_micros())
    });
    us.ok().filter(|us| *us >= 0)
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

    #[test]
    fn times_have_units_and_dates_zones() {
        assert_eq!(Unit::Us(1e6).of_text("t", " 1.5 "), Ok(1_500_000));
        assert_eq!(Unit::Us(1e-3).of_text("t", "2000"), Ok(2));
        let date = |text| Unit::Date.of_text("t", text);
        assert_eq!(date("1970-01-01 00:00:01.9799600"), Ok(1_979_960));
        assert_eq!(date("1970-01-01T01:00:00+01:00"), Ok(0));
        assert_eq!(date("1970-01-01T00:00:02Z"), Ok(2_000_000));
        for wrong in ["-1", "NaN", "inf", "1e300", "", "x"] {
            assert!(Unit::Us(1e6).of_text("t", wrong).is_err(), "{wrong}");
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }

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
