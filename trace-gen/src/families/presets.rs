//! Workloads known by name: a family and settings.

use super::Family;
use crate::error::GenError;
use crate::params::Values;

/// A named workload.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub summary: &'static str,
    /// The family.
    pub family: &'static str,
    /// What of its parameters differs from the defaults.
    pub settings: &'static [(&'static str, &'static str)],
}

/// All presets.
pub const PRESETS: &[Preset] = &[];

impl Preset {
    /// The parameters of its family.
    ///
    /// # Errors
    /// Where the family has no such parameter.
    pub fn values(&self, family: &Family) -> Result<Values, GenError> {
        let mut values = family.values();
        for (name, value) in self.settings {
            values.set(name, value)?;
        }
        Ok(values)
    }
}
