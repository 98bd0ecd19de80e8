//! Parameters of workloads: declared in a list that the command's help repeats, given as text, read with checks.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::draw::Dist;
use crate::error::GenError;

/// A parameter of a family.
#[derive(Debug)]
pub struct Param {
    /// Its name, as a flag without the dashes.
    pub name: &'static str,
    /// What it is where nothing is said.
    pub default: &'static str,
    /// What it does, with its unit.
    pub help: &'static str,
}

pub(crate) const fn param(name: &'static str, default: &'static str, help: &'static str) -> Param {
    Param {
        name,
        default,
        help,
    }
}

/// The parameters of one workload: what was said, and the defaults for the rest.
#[derive(Clone, Debug)]
pub struct Values {
    declared: &'static [&'static [Param]],
    /// Where a family's default is not the usual one.
    defaults: &'static [(&'static str, &'static str)],
    said: BTreeMap<&'static str, String>,
}

impl Values {
    pub(crate) fn new(
        declared: &'static [&'static [Param]],
        defaults: &'static [(&'static str, &'static str)],
    ) -> Self {
        Self {
            declared,
            defaults,
            said: BTreeMap::new(),
        }
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), GenError> {
        let Some(param) = self.declared().find(|param| param.name == name) else {
            let names: Vec<_> = self.declared().map(|param| param.name).collect();
            return Err(GenError::Parameter {
                name: "parameter",
                found: format!("`{name}`"),
                expected: format!("one of {}", names.join(", ")),
            });
        };
        self.said.insert(param.name, value.to_owned());
        Ok(())
    }

    /// What was said, by name.
    pub fn said(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.said
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
    }

    /// All parameters and what they are where nothing is said.
    pub fn defaults(&self) -> impl Iterator<Item = (&'static Param, &'static str)> {
        self.declared().map(|param| (param, self.default_of(param)))
    }

    fn declared(&self) -> impl Iterator<Item = &'static Param> + use<> {
        self.declared.iter().copied().flatten()
    }

    fn default_of(&self, param: &'static Param) -> &'static str {
        let own = self.defaults.iter().find(|(name, _)| *name == param.name);
        own.map_or(param.default, |(_, value)| value)
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        let default = || {
            let param = self.declared().find(|param| param.name == name);
            param.map_or("", |param| self.default_of(param))
        };
        self.said.get(name).map_or_else(default, String::as_str)
    }

    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Result<f64, GenError> {
        let value = self.text(name).trim().parse().ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            self.refused(name, &expected)
        })
    }

    pub(crate) fn count(&self, name: &str, range: RangeInclusive<u32>) -> Result<u32, GenError> {
        let value = self.text(name).trim().replace('_', "").parse().ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            self.refused(name, &expected)
        })
    }

    /// A probability.
    pub(crate) fn chance(&self, name: &str) -> Result<f64, GenError> {
        self.number(name, 0.0..=1.0)
    }

    pub(crate) fn dist(&self, name: &str) -> Result<Dist, GenError> {
        self.text(name)
            .parse()
            .map_err(|fault: String| self.refused(name, &format!("a distribution ({fault})")))
    }

    /// One of several words, by its place among them.
    pub(crate) fn word(&self, name: &str, words: &[&str]) -> Result<usize, GenError> {
        let found = self.text(name);
        let place = words.iter().position(|word| *word == found);
        place.ok_or_else(|| self.refused(name, &format!("one of {}", words.join(", "))))
    }

    pub(crate) fn refused(&self, name: &str, expected: &str) -> GenError {
        let param = self.declared().find(|param| param.name == name);
        GenError::Parameter {
            name: param.map_or("parameter", |param| param.name),
            found: format!("`{}`", self.text(name)),
            expected: expected.to_owned(),
        }
    }
}
