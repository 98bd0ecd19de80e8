//! When sessions start.

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};

use crate::draw::{micros, unit};
use crate::error::GenError;
use crate::parameters::{CHANCE, count_from, parameters};

const PROCESSES: &[&str] = &[
    "poisson", "gamma", "diurnal", "uniform", "regular", "closed",
];

parameters! {
    ArrivalParams {
        sessions: u32, count_from(0), "100",
            "Sessions";
        arrivals: String, Domain::Choice(PROCESSES), "poisson",
            "How sessions start: poisson, gamma (bursts), diurnal, uniform (over the whole span), regular, or closed (a fixed \
            number of users, each of whom starts the next session some time after the last has ended)";
        session_gap: f64, Domain::Number(0.0, 1e9), "10",
            "Mean seconds from one session's start to the next; closed: from a session's end to the user's next";
        burst_cv: f64, Domain::Number(0.01, 100.0), "3",
            "gamma: coefficient of variation of the gaps (1 is poisson)";
        day_seconds: f64, Domain::Number(1.0, 1e9), "86400",
            "diurnal: length of a day; a session starts most likely in its middle";
        day_amplitude: f64, CHANCE, "0.8",
            "diurnal: how far the rate swings, 0 (not at all) to 1 (to nothing at night)";
        users: u32, Domain::Count(1, 10_000_000), "20",
            "closed: users";
    }
}

/// A process of session starts.
#[derive(Debug)]
pub(crate) enum Arrivals {
    Poisson {
        gap_seconds: f64,
    },
    Gamma {
        gap_seconds: f64,
        gaps: Gamma<f64>,
    },
    Diurnal {
        gap_seconds: f64,
        day_seconds: f64,
        amplitude: f64,
    },
    /// Like the order statistics of uniform starts: the rest of the span is divided by those still to come.
    Uniform {
        span_seconds: f64,
    },
    Regular {
        gap_seconds: f64,
    },
    Closed {
        gap_seconds: f64,
        users: u32,
    },
}

impl Arrivals {
    pub(crate) fn read(params: &Params) -> Result<Self, GenError> {
        let ArrivalParams {
            sessions,
            arrivals,
            session_gap: gap_seconds,
            burst_cv: cv,
            day_seconds,
            day_amplitude: amplitude,
            users,
        } = ArrivalParams::read(params);
        Ok(match arrivals.as_str() {
            "gamma" => Self::Gamma {
                gap_seconds,
                gaps: Gamma::new(1.0 / (cv * cv), cv * cv).map_err(|fault| {
                    GenError::Parameter {
                        name: "burst-cv",
                        found: cv.to_string(),
                        expected: fault.to_string(),
                    }
                })?,
            },
            "diurnal" => Self::Diurnal {
                gap_seconds,
                day_seconds,
                amplitude,
            },
            "uniform" => Self::Uniform {
                span_seconds: gap_seconds * f64::from(sessions),
            },
            "regular" => Self::Regular { gap_seconds },
            "closed" => Self::Closed { gap_seconds, users },
            _ => Self::Poisson { gap_seconds },
        })
    }

    /// Sessions that start without waiting for another one: all in an open process, one a user in a closed one.
    pub(crate) fn open(&self) -> Option<u32> {
        match self {
            Self::Closed { users, .. } => Some(*users),
            _ => None,
        }
    }

    /// The start after one at `now_us`, or after a session's end in a closed process; `left` are still to come.
    pub(crate) fn next(&self, now_us: i64, left: u32, rng: &mut ChaCha8Rng) -> i64 {
        let exponential = |rng: &mut ChaCha8Rng| -> f64 { Exp1.sample(rng) };
        let seconds = match self {
            Self::Poisson { gap_seconds } | Self::Closed { gap_seconds, .. } => {
                gap_seconds * exponential(rng)
            }
            Self::Gamma { gap_seconds, gaps } => gap_seconds * gaps.sample(rng),
            Self::Regular { gap_seconds } => *gap_seconds,
            Self::Uniform { span_seconds } => {
                let rest = (span_seconds - now_us as f64 / 1e6).max(0.0);
                rest * (1.0 - (1.0 - unit(rng)).powf(1.0 / f64::from(left.max(1))))
            }
            Self::Diurnal {
                gap_seconds,
                day_seconds,
                amplitude,
            } => {
                return diurnal(now_us, *gap_seconds, *day_seconds, *amplitude, rng);
            }
        };
        now_us.saturating_add(micros(seconds))
    }
}

/// Thinning: candidates at the highest rate, kept by the rate at their time.
fn diurnal(now_us: i64, gap: f64, day: f64, amplitude: f64, rng: &mut ChaCha8Rng) -> i64 {
    let mut at_us = now_us;
    loop {
        let one: f64 = Exp1.sample(rng);
        at_us = at_us.saturating_add(micros(gap / (1.0 + amplitude) * one).max(1));
        let phase = at_us as f64 / 1e6 / day * std::f64::consts::TAU;
        let rate = 1.0 - amplitude * phase.cos();
        if unit(rng) * (1.0 + amplitude) < rate {
            return at_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn starts(given: &[(&str, &str)], sessions: u32) -> Vec<f64> {
        let mut values = Params::new(ArrivalParams::PARAMS);
        values.set("sessions", &sessions.to_string()).unwrap();
        for (name, value) in given {
            values.set(name, value).unwrap();
        }
        let arrivals = Arrivals::read(&values).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut now_us = 0;
        let next = |left| {
            now_us = arrivals.next(now_us, left, &mut rng);
            now_us as f64 / 1e6
        };
        (0..sessions).rev().map(|left| left + 1).map(next).collect()
    }

    fn mean_and_cv(starts: &[f64]) -> (f64, f64) {
        let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, square.sqrt() / mean)
    }

    #[test]
    fn every_process_keeps_its_rate_and_its_burstiness() {
        for (process, cv) in [
            ("poisson", 1.0),
            ("gamma", 3.0),
            ("regular", 0.0),
            ("closed", 1.0),
        ] {
            let (mean, found) = mean_and_cv(&starts(&[("arrivals", process)], 40_000));
            assert!((mean / 10.0 - 1.0).abs() < 0.05, "{process}: mean {mean}");
            assert!((found - cv).abs() < 0.15, "{process}: cv {found}");
        }
    }

    #[test]
    fn uniform_starts_fill_their_span() {
        let starts = starts(&[("arrivals", "uniform")], 2_000);
        let last = starts[1_999];
        assert!(last <= 20_000.0 && last > 19_800.0, "{last}");
        assert!((starts[1_000] / 10_000.0 - 1.0).abs() < 0.1);
    }

    #[test]
    fn nights_are_quiet() {
        let given = [
            ("arrivals", "diurnal"),
            ("session-gap", "1"),
            ("day-seconds", "1000"),
        ];
        let starts = starts(&given, 40_000);
        let (mean, _) = mean_and_cv(&starts);
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        let by_day = starts
            .iter()
            .filter(|at| (250.0..750.0).contains(&(*at % 1000.0)));
        // The share of a cosine of amplitude 0.8 in its upper half: 1/2 + 0.8/pi.
        let share = by_day.count() as f64 / 40_000.0;
        assert!((share - 0.7546).abs() < 0.02, "{share}");
    }
}
