//! What can be chosen about an import: named options, described once for help, checking and use.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::error::ImportError;

/// An option of a format.
#[derive(Debug)]
pub struct Opt {
    /// Its name, as after `--`.
    pub name: &'static str,
    /// One sentence for the help.
    pub about: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it is if not given; `None` where it may be absent.
    pub default: Option<&'static str>,
}

/// What an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Nothing: it is given or not.
    Flag,
    /// A whole number from 1 on.
    Count,
    /// A whole number from 0 on.
    Seed,
    /// A time: a number with ms, s, m or h.
    Span,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Text, which the help calls so.
    Text(&'static str),
}

impl Kind {
    /// Whether `text` will do; else what would.
    ///
    /// # Errors
    /// What was expected.
    pub fn check(self, text: &str) -> Result<(), String> {
        let good = match self {
            Self::Flag => text == "true",
            Self::Count => text.parse::<u32>().is_ok_and(|number| number > 0),
            Self::Seed => text.parse::<u64>().is_ok(),
            Self::Span => span_us(text).is_some(),
            Self::Choice(names) => names.contains(&text),
            Self::Text(_) => !text.is_empty(),
        };
        match good {
            true => Ok(()),
            false => Err(format!("expected {}", self.expected())),
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Flag => "true".to_owned(),
            Self::Count => "a whole number from 1 on".to_owned(),
            Self::Seed => "a whole number from 0 on".to_owned(),
            Self::Span => {
                "a number with ms, s, m or h, such as 90s, 30m or 4h, of at most 285 years"
                    .to_owned()
            }
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Text(what) => what.to_owned(),
        }
    }
}

/// Microseconds of a time such as `90s`.
fn span_us(text: &str) -> Option<u64> {
    /// Beyond this a float no longer tells microseconds apart.
    const LONGEST_US: f64 = 9_007_199_254_740_992.0;
    let units = [("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
    let us = units.iter().find_map(|(unit, us)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * us)
    })?;
    (0.0..=LONGEST_US).contains(&us).then_some(us as u64)
}

/// The values of a format's options, checked.
#[derive(Clone, Debug)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// The values given (name, value), and the defaults of the rest.
    ///
    /// # Errors
    /// Where the format has no such option, or the option takes something else.
    pub fn new(
        format: &'static str,
        options: &[&'static Opt],
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ImportError> {
        let mut values = BTreeMap::new();
        for option in options {
            if let Some(default) = option.default {
                values.insert(option.name, default.to_owned());
            }
        }
        for (name, value) in given {
            let Some(option) = options.iter().find(|option| option.name == name) else {
                return Err(ImportError::Parameter {
                    name: format,
                    found: format!("given the option `{name}`"),
                    expected: "one that this format has".to_owned(),
                });
            };
            option
                .kind
                .check(&value)
                .map_err(|_| option.fault(&value))?;
            values.insert(option.name, value);
        }
        Ok(Self(values))
    }

    pub(crate) fn text(&self, option: &Opt) -> Option<&str> {
        self.0.get(option.name).map(String::as_str)
    }

    pub(crate) fn flag(&self, option: &Opt) -> bool {
        self.0.contains_key(option.name)
    }

    pub(crate) fn count(&self, option: &'static Opt) -> Result<u32, ImportError> {
        self.parsed(option, |text| text.parse().ok())
    }

    pub(crate) fn seed(&self, option: &'static Opt) -> Result<u64, ImportError> {
        self.parsed(option, |text| text.parse().ok())
    }

    pub(crate) fn span_us(&self, option: &'static Opt) -> Result<u64, ImportError> {
        self.parsed(option, span_us)
    }

    fn parsed<T>(
        &self,
        option: &'static Opt,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ImportError> {
        let text = self.text(option).unwrap_or_default();
        parse(text).ok_or_else(|| option.fault(text))
    }

    /// All values, as they would be given.
    pub(crate) fn as_given(&self) -> String {
        let mut given = String::new();
        for (name, value) in &self.0 {
            let _ = match value.as_str() {
                "true" => write!(given, " --{name}"),
                value => write!(given, " --{name} {value}"),
            };
        }
        given
    }
}

impl Opt {
    pub(crate) fn fault(&'static self, found: &str) -> ImportError {
        ImportError::Parameter {
            name: self.name,
            found: match found {
                "" => "missing".to_owned(),
                found => format!("`{found}`"),
            },
            expected: self.kind.expected(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        assert_eq!(span_us("1.5h"), Some(5_400_000_000));
        assert_eq!(span_us("250ms"), Some(250_000));
        assert_eq!(span_us("0s"), Some(0));
        for wrong in ["4", "-1s", "s", "NaNs", "infh", "1e300h", ""] {
            assert_eq!(span_us(wrong), None, "{wrong}");
        }
    }
}
