//! Distributions as parameters: written in a line, drawn from a seeded generator.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};
use trace::synthetic::LONGEST_TEXT_TOKENS;

/// How distributions are written; the command's help repeats it.
pub const DISTRIBUTIONS: &str = "\
Distributions: 120 (always), uniform(1,9), exp(MEAN), geometric(MEAN) (1 or more), lognormal(MEDIAN,SIGMA),
  pareto(LEAST,ALPHA), oneof(A,B,...) (equally likely), 0.9*exp(5)+0.1*600 (a mixture)";

/// A distribution of lengths, counts or times: nothing below 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Dist {
    /// Always the same value.
    Constant(f64),
    /// Uniform between the two values.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Geometric from 1 on, with this mean: after each, the same chance to end.
    Geometric(f64),
    /// Log-normal: the median, and the standard deviation of the logarithm.
    LogNormal(f64, f64),
    /// Pareto: the least value, and the exponent of the tail.
    Pareto(f64, f64),
    /// One of these values, all equally likely.
    OneOf(Vec<f64>),
    /// One of several, by weight.
    Mixture(Vec<(f64, Dist)>),
}

impl Dist {
    /// The distribution of observed values, none if there are none: of more than `points` values, the means of as many
    /// groups of neighbours, so that the mean stays what it is.
    pub fn of(values: &mut [f64], points: usize) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (first, last) = (values.first()?, values.last()?);
        if first == last {
            return Some(Self::Constant(*first));
        }
        let points = points.clamp(1, values.len());
        let edge = |point: usize| point * values.len() / points;
        let mean = |point: usize| {
            let group = &values[edge(point)..edge(point + 1)];
            let mean = group.iter().sum::<f64>() / group.len() as f64;
            (mean * 1e3).round() / 1e3
        };
        Some(Self::OneOf((0..points).map(mean).collect()))
    }

    pub(crate) fn draw(&self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) => low + (high - low) * unit(rng),
            Self::Exponential(mean) => {
                let one: f64 = Exp1.sample(rng);
                mean * one
            }
            Self::Geometric(mean) => 1.0 + geometric_beyond(1.0 / mean, rng),
            Self::LogNormal(median, sigma) => {
                let normal: f64 = StandardNormal.sample(rng);
                median * (sigma * normal).exp()
            }
            Self::Pareto(least, alpha) => least * (1.0 - unit(rng)).powf(-1.0 / alpha),
            Self::OneOf(values) => values[rng.random_range(0..values.len())],
            Self::Mixture(parts) => {
                let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
                let mut at = total * unit(rng);
                let part = parts.iter().find(|(weight, _)| {
                    at -= weight;
                    at < 0.0
                });
                part.or(parts.last())
                    .map_or(0.0, |(_, dist)| dist.draw(rng))
            }
        }
    }

    /// A whole number, at most [`LONGEST_TEXT_TOKENS`].
    pub(crate) fn count(&self, rng: &mut ChaCha8Rng) -> u32 {
        count(self.draw(rng))
    }

    /// The same, at least 1.
    pub(crate) fn some(&self, rng: &mut ChaCha8Rng) -> u32 {
        self.count(rng).max(1)
    }

    /// Microseconds of a time in seconds, at most a century.
    pub(crate) fn micros(&self, rng: &mut ChaCha8Rng) -> i64 {
        micros(self.draw(rng))
    }

    /// The largest of the values that the distribution is written with: its values, bounds, mean or median.
    pub(crate) fn scale(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(_, high) => *high,
            Self::Exponential(mean) | Self::Geometric(mean) => *mean,
            Self::LogNormal(median, _) => *median,
            Self::Pareto(least, _) => *least,
            Self::OneOf(values) => values.iter().copied().fold(0.0, f64::max),
            Self::Mixture(parts) => {
                let scales = parts.iter().map(|(_, dist)| dist.scale());
                scales.fold(0.0, f64::max)
            }
        }
    }

    fn valid(&self) -> bool {
        let positive = |value: &f64| value.is_finite() && *value > 0.0;
        let length = |value: &f64| value.is_finite() && *value >= 0.0;
        match self {
            Self::Constant(value) => length(value),
            Self::Uniform(low, high) => length(low) && length(high) && low <= high,
            Self::Exponential(mean) => length(mean),
            Self::Geometric(mean) => mean.is_finite() && *mean >= 1.0,
            Self::LogNormal(median, sigma) => length(median) && length(sigma),
            Self::Pareto(least, alpha) => length(least) && positive(alpha),
            Self::OneOf(values) => !values.is_empty() && values.iter().all(length),
            Self::Mixture(parts) => {
                parts.len() > 1
                    && parts
                        .iter()
                        .all(|(weight, dist)| positive(weight) && dist.valid())
            }
        }
    }
}

/// A length as a whole number, at most [`LONGEST_TEXT_TOKENS`].
pub(crate) fn count(length: f64) -> u32 {
    length.round().clamp(0.0, f64::from(LONGEST_TEXT_TOKENS)) as u32
}

/// Microseconds of a time in seconds, at most a century.
pub(crate) fn micros(seconds: f64) -> i64 {
    (seconds * 1e6).clamp(0.0, 3.2e15) as i64
}

/// Uniform from 0 (possible) to 1 (not).
pub(crate) fn unit(rng: &mut ChaCha8Rng) -> f64 {
    rng.random_range(0.0..1.0)
}

/// Failures before the first success.
fn geometric_beyond(chance: f64, rng: &mut ChaCha8Rng) -> f64 {
    if chance >= 1.0 {
        return 0.0;
    }
    let tail = 1.0 - unit(rng);
    (tail.ln() / (1.0 - chance).ln()).floor()
}

impl FromStr for Dist {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let dist = match text.contains('*') {
            true => text
                .split('+')
                .map(|part| {
                    let (weight, dist) = part.split_once('*').ok_or_else(|| unknown(part))?;
                    Ok((number(weight)?, dist.parse()?))
                })
                .collect::<Result<_, String>>()
                .map(Self::Mixture)?,
            false => simple(text)?,
        };
        match dist.valid() {
            true => Ok(dist),
            false => Err(format!("`{text}` has values out of range")),
        }
    }
}

fn simple(text: &str) -> Result<Dist, String> {
    let Some((name, rest)) = text.split_once('(') else {
        return Ok(Dist::Constant(number(text)?));
    };
    let list = rest.strip_suffix(')').ok_or_else(|| unknown(text))?;
    let values: Vec<f64> = list.split(',').map(number).collect::<Result<_, _>>()?;
    match (name.trim(), &values[..]) {
        ("uniform", &[low, high]) => Ok(Dist::Uniform(low, high)),
        ("exp", &[mean]) => Ok(Dist::Exponential(mean)),
        ("geometric", &[mean]) => Ok(Dist::Geometric(mean)),
        ("lognormal", &[median, sigma]) => Ok(Dist::LogNormal(median, sigma)),
        ("pareto", &[least, alpha]) => Ok(Dist::Pareto(least, alpha)),
        ("oneof", _) => Ok(Dist::OneOf(values)),
        _ => Err(unknown(text)),
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| unknown(text))
}

fn unknown(text: &str) -> String {
    format!("`{}` is no distribution", text.trim())
}

impl fmt::Display for Dist {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(out, "{value}"),
            Self::Uniform(low, high) => write!(out, "uniform({low},{high})"),
            Self::Exponential(mean) => write!(out, "exp({mean})"),
            Self::Geometric(mean) => write!(out, "geometric({mean})"),
            Self::LogNormal(median, sigma) => write!(out, "lognormal({median},{sigma})"),
            Self::Pareto(least, alpha) => write!(out, "pareto({least},{alpha})"),
            Self::OneOf(values) => {
                let values: Vec<_> = values.iter().map(ToString::to_string).collect();
                write!(out, "oneof({})", values.join(","))
            }
            Self::Mixture(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .map(|(weight, dist)| format!("{weight}*{dist}"))
                    .collect();
                write!(out, "{}", parts.join("+"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn mean(text: &str) -> f64 {
        let dist: Dist = text.parse().unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let draws = 40_000;
        (0..draws).map(|_| dist.draw(&mut rng)).sum::<f64>() / f64::from(draws)
    }

    #[test]
    fn means_are_those_of_the_textbook() {
        let cases = [
            ("12", 12.0),
            ("uniform(10,20)", 15.0),
            ("exp(8)", 8.0),
            ("geometric(14)", 14.0),
            ("lognormal(100,0.5)", 100.0 * (0.125_f64).exp()),
            ("pareto(10,3)", 15.0),
            ("0.75*4+0.25*exp(40)", 13.0),
            ("oneof(1,2,6)", 3.0),
        ];
        for (text, expected) in cases {
            let found = mean(text);
            assert!((found / expected - 1.0).abs() < 0.03, "{text}: {found}");
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        for text in ["3", "oneof(0,5,1000)", "0.5*pareto(1,2)+0.5*lognormal(3,1)"] {
            assert_eq!(text.parse::<Dist>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "x",
            "exp",
            "exp(1",
            "exp(1,2)",
            "exp(-1)",
            "uniform(2,1)",
            "geometric(0.5)",
            "NaN",
            "oneof()",
            "oneof(3,-2)",
            "0.5*3",
            "0*3+1*3",
            "1*2+3",
            "pareto(1,0)",
            "inf",
        ] {
            assert!(text.parse::<Dist>().is_err(), "{text}");
        }
    }

    #[test]
    fn groups_of_values_keep_their_mean() {
        let mut values: Vec<f64> = (1..=1_000).map(|value| f64::from(value).powi(2)).collect();
        let mean = values.iter().sum::<f64>() / 1_000.0;
        let Some(Dist::OneOf(points)) = Dist::of(&mut values, 10) else {
            panic!("many values")
        };
        assert_eq!(points.len(), 10);
        assert!((points.iter().sum::<f64>() / 10.0 - mean).abs() < 0.01);
        assert_eq!(Dist::of(&mut [], 5), None);
        assert_eq!(Dist::of(&mut [4.0, 4.0], 5), Some(Dist::Constant(4.0)));
    }
}
