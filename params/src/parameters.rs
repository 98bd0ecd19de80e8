//! Parameters: declared once, given as `key=value,key=value`, read by name.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::names::nearest;
use crate::units::duration_us;

/// A parameter of a policy, a cost model, a generator or an importer.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its value where none is given, as one would write it.
    pub default: &'static str,
    /// Its legal values.
    pub domain: Domain,
    /// What it does, in one line.
    pub help: &'static str,
}

/// The legal values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// A number from the first to the second bound, both included.
    Number(f64, f64),
    /// A number within bounds, or this word.
    NumberOr(f64, f64, &'static str),
    /// A whole number within bounds, or `unbounded`.
    CountOrUnbounded(u64, u64),
    /// A whole number within bounds.
    Count(u64, u64),
    /// A duration such as `90s`, `5m`, `250ms`, `2h`; a bare number is seconds.
    Duration,
    /// A duration, or this word.
    DurationOr(&'static str),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Nothing: it is given, or it is not. The value is `true` or empty.
    Flag,
    /// Any text, which the help calls so; empty where there is none.
    Text(&'static str),
    /// What a function accepts, and what that is in words. The error says what is wrong.
    Parsed(&'static str, fn(&str) -> Result<(), String>),
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(least, most) => write!(f, "a number from {least} to {most}"),
            Self::NumberOr(least, most, word) => {
                write!(f, "a number from {least} to {most}, or {word}")
            }
            Self::CountOrUnbounded(least, most) => {
                write!(f, "a whole number from {least} to {most}, or unbounded")
            }
            Self::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Duration => write!(f, "a duration such as 250ms, 90s, 5m or 2h"),
            Self::DurationOr(word) => {
                write!(f, "a duration such as 250ms, 90s, 5m or 2h, or {word}")
            }
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::Flag => write!(f, "true"),
            Self::Text(what) | Self::Parsed(what, _) => write!(f, "{what}"),
        }
    }
}

/// Why parameters are not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// Not `key=value`.
    #[error("`{0}` is not of the form key=value")]
    NotAPair(String),
    /// Given twice.
    #[error("parameter `{0}` is given twice")]
    Twice(String),
    /// There is no such parameter.
    #[error("there is no parameter `{name}`; {}", valid_names(.nearest.as_deref(), .valid))]
    Unknown {
        /// The name given.
        name: String,
        /// The most similar name, where one is similar.
        nearest: Option<String>,
        /// The names that there are.
        valid: Vec<&'static str>,
    },
    /// The value is outside its domain.
    #[error("parameter `{name}` is {expected}, not `{value}`")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// Its domain in words.
        expected: String,
    },
}

fn valid_names(nearest: Option<&str>, valid: &[&str]) -> String {
    let list = valid.join(", ");
    match nearest {
        _ if valid.is_empty() => "it takes none".to_owned(),
        None => format!("valid ones: {list}"),
        Some(name) => format!("did you mean `{name}`? Valid ones: {list}"),
    }
}

/// The values of all parameters of one entry, checked against their domains.
#[derive(Clone, Debug)]
pub struct Params {
    specs: Cow<'static, [Param]>,
    given: Vec<Option<String>>,
}

impl Params {
    /// All parameters at their defaults.
    pub fn new(specs: impl Into<Cow<'static, [Param]>>) -> Self {
        let specs = specs.into();
        Self {
            given: vec![None; specs.len()],
            specs,
        }
    }

    /// Reads `key=value,key=value`; what is not given gets its default.
    ///
    /// # Errors
    /// [`ParamError`], which names the valid parameters or values.
    pub fn parse(specs: &'static [Param], text: &str) -> Result<Self, ParamError> {
        let mut params = Self::new(specs);
        for pair in text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| ParamError::NotAPair(pair.to_owned()))?;
            let name = name.trim();
            if params.given().any(|(given, _)| given == name) {
                return Err(ParamError::Twice(name.to_owned()));
            }
            params.set(name, value)?;
        }
        Ok(params)
    }

    /// Gives a parameter a value.
    ///
    /// # Errors
    /// [`ParamError`] where there is no such parameter or the value is outside its domain.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        let index = self
            .specs
            .iter()
            .position(|spec| spec.name == name)
            .ok_or_else(|| self.unknown(name))?;
        let value = value.trim();
        check(&self.specs[index], value)?;
        self.given[index] = Some(value.to_owned());
        Ok(())
    }

    fn unknown(&self, name: &str) -> ParamError {
        let valid: Vec<_> = self.specs.iter().map(|spec| spec.name).collect();
        ParamError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, &valid),
            valid,
        }
    }

    /// The declared parameters.
    pub fn specs(&self) -> &[Param] {
        &self.specs
    }

    /// What was given, by name, in the order of declaration.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pairs = self.specs.iter().zip(&self.given);
        pairs.filter_map(|(spec, value)| Some((spec.name, value.as_deref()?)))
    }

    /// The value as written.
    ///
    /// # Panics
    /// If no such parameter is declared: an error in the code that reads it.
    pub fn text(&self, name: &str) -> &str {
        let index = self.specs.iter().position(|spec| spec.name == name);
        let index = index.expect("only declared parameters are read");
        self.given[index]
            .as_deref()
            .unwrap_or(self.specs[index].default)
    }

    /// The value as written; `None` where it is empty or no such parameter is declared.
    pub fn get(&self, name: &str) -> Option<&str> {
        let declared = self.specs.iter().any(|spec| spec.name == name);
        declared
            .then(|| self.text(name))
            .filter(|text| !text.is_empty())
    }

    /// The value of a parameter whose domain is what `T` parses.
    ///
    /// # Panics
    /// If `T` parses less than the domain allows: an error in the declaration.
    pub fn parsed<T: FromStr>(&self, name: &str) -> T {
        let value = self.text(name).parse().ok();
        value.expect("checked against its domain")
    }

    /// Whether a flag is given.
    pub fn flag(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }

    /// The value of a number.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked against its domain")
    }

    /// The value of a number; `None` for the word that may stand in its place.
    pub fn number_or_word(&self, name: &str) -> Option<f64> {
        self.text(name).parse().ok()
    }

    /// The value of a whole number; `None` for `unbounded`.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// The value of a duration, in microseconds.
    pub fn duration_us(&self, name: &str) -> i64 {
        duration_us(self.text(name)).expect("checked against its domain")
    }

    /// The value of a duration in microseconds; `None` for the word that may stand in its place.
    pub fn duration_or_word_us(&self, name: &str) -> Option<i64> {
        duration_us(self.text(name))
    }
}

fn check(spec: &Param, value: &str) -> Result<(), ParamError> {
    let count = value.parse::<u64>();
    let mut expected = spec.domain.to_string();
    let legal = match spec.domain {
        Domain::NumberOr(.., word) if value == word => true,
        Domain::Number(least, most) | Domain::NumberOr(least, most, _) => value
            .parse::<f64>()
            .is_ok_and(|number| (least..=most).contains(&number)),
        Domain::CountOrUnbounded(..) if value == "unbounded" => true,
        Domain::CountOrUnbounded(least, most) | Domain::Count(least, most) => {
            count.is_ok_and(|count| (least..=most).contains(&count))
        }
        Domain::DurationOr(word) if value == word => true,
        Domain::Duration | Domain::DurationOr(_) => duration_us(value).is_some(),
        Domain::Choice(words) => words.contains(&value),
        Domain::Flag => value == "true",
        Domain::Text(_) => !value.is_empty(),
        Domain::Parsed(_, parse) => match parse(value) {
            Ok(()) => true,
            Err(fault) => {
                expected = format!("{expected} ({fault})");
                false
            }
        },
    };
    if legal {
        return Ok(());
    }
    Err(ParamError::OutOfRange {
        name: spec.name,
        value: value.to_owned(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Param] = &[
        Param {
            name: "half-life",
            default: "10m",
            domain: Domain::Duration,
            help: "",
        },
        Param {
            name: "memory",
            default: "64",
            domain: Domain::CountOrUnbounded(1, 100),
            help: "",
        },
        Param {
            name: "p",
            default: "hazard",
            domain: Domain::Choice(&["hazard", "recency"]),
            help: "",
        },
    ];

    #[test]
    fn defaults_fill_what_is_not_given() {
        let params = Params::parse(SPECS, "p=recency, half-life=90s").unwrap();
        assert_eq!(params.duration_us("half-life"), 90_000_000);
        assert_eq!(params.count("memory"), Some(64));
        assert_eq!(params.text("p"), "recency");
        assert_eq!(
            Params::parse(SPECS, "memory=unbounded")
                .unwrap()
                .count("memory"),
            None
        );
    }

    #[test]
    fn errors_name_the_valid_ones() {
        let message = |text| Params::parse(SPECS, text).unwrap_err().to_string();
        assert_eq!(
            message("q=1"),
            "there is no parameter `q`; valid ones: half-life, memory, p"
        );
        assert_eq!(
            message("p=luck"),
            "parameter `p` is one of hazard, recency, not `luck`"
        );
        assert_eq!(
            message("memory=0"),
            "parameter `memory` is a whole number from 1 to 100, or unbounded, not `0`"
        );
        assert_eq!(message("p"), "`p` is not of the form key=value");
        assert_eq!(message("p=hazard,p=hazard"), "parameter `p` is given twice");
        assert!(message("half-life=-1s").contains("a duration such as"));
    }
}
