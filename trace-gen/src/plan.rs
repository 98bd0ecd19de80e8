//! Workloads written down: parts, each a family with parameters, that run side by side.

use std::collections::BTreeMap;
use std::path::Path;

use params::Params;
use serde::{Deserialize, Serialize};

use crate::context::GeneratorContext;
use crate::error::GenError;
use crate::families;
use crate::family::{self, Family};

/// A workload of several parts, as it stands in a file. Parts share nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The parts.
    pub part: Vec<PlanPart>,
}

/// One family at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanPart {
    /// The family.
    pub family: String,
    /// The tenant whose requests they are.
    #[serde(default)]
    pub tenant: u32,
    /// Its parameters by name; the rest have their defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

impl Plan {
    /// Reads a plan (TOML).
    ///
    /// # Errors
    /// Where the file cannot be read or is no plan.
    pub fn read(path: &Path) -> Result<Self, GenError> {
        let text = std::fs::read_to_string(path).map_err(|source| GenError::io(path, source))?;
        toml::from_str(&text).map_err(|fault| GenError::Input {
            path: path.to_owned(),
            problem: fault.to_string(),
        })
    }

    /// Writes the workload to `out`; returns the number of requests.
    ///
    /// # Errors
    /// Where a family or parameter does not exist or is out of range, or the output cannot be written.
    pub fn write(&self, out: &Path, context: &GeneratorContext) -> Result<u64, GenError> {
        let parts = self.part.iter().map(PlanPart::params);
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        family::write(out, "plan", "trace-gen plan", &parts, context)
    }
}

impl PlanPart {
    fn params(&self) -> Result<(&'static Family, Params, u32), GenError> {
        let family = families::find(&self.family)?;
        let mut params = family.params();
        for (name, value) in &self.parameters {
            params.set(name, value)?;
        }
        Ok((family, params, self.tenant))
    }
}
