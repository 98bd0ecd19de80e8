//! Policies on the command line.

use anyhow::{Result, bail};
use params::split_list;
use policies::{ADMISSION, EVICTION, Entry, PolicyFactory};

use crate::args::Policies;

/// On the command line: every policy of the registry.
pub const EVERY: &str = "every";

impl Policies {
    /// Every eviction policy with every admission policy; where no admission policy is named, with the one that it comes with.
    ///
    /// # Errors
    /// If a name or a parameter is not known, or no eviction policy is named; the error lists what is valid.
    pub fn factories(&self) -> Result<Vec<PolicyFactory>> {
        let evictions = names(&self.policies, EVICTION)
            .iter()
            .map(|name| policies::eviction(name))
            .collect::<Result<Vec<_>, _>>()?;
        let admissions = names(&self.admissions, ADMISSION)
            .iter()
            .map(|name| policies::admission(name))
            .collect::<Result<Vec<_>, _>>()?;
        let no_admission = !self.admissions.is_empty() && admissions.is_empty();
        if evictions.is_empty() || no_admission {
            bail!("nothing to run: a list names no policy");
        }
        Ok(policies::factories(&evictions, &admissions))
    }
}

/// The names in lists as one writes them.
fn names<B>(lists: &[String], registry: &[Entry<B>]) -> Vec<String> {
    let of_registry = || registry.iter().map(|entry| entry.name.to_owned()).collect();
    lists
        .iter()
        .flat_map(|list| split_list(list))
        .flat_map(|name| match name.as_str() {
            EVERY => of_registry(),
            _ => vec![name],
        })
        .collect()
}
