//! Lists on the command line.

use anyhow::{Result, bail};
use params::split_list;
use policies::{ADMISSION, EVICTION, Entry, PolicyFactory};

/// On the command line: every policy of the registry.
pub const EVERY: &str = "every";

/// Every eviction policy of some lists with every admission policy of others; where no admission policy is named, with the one
/// that it comes with.
///
/// # Errors
/// If a name or a parameter is not known, or no eviction policy is named; the error lists what is valid.
pub fn policy_factories(evictions: &[String], admissions: &[String]) -> Result<Vec<PolicyFactory>> {
    let admissions_named = !admissions.is_empty();
    let evictions = names(evictions, EVICTION)
        .iter()
        .map(|name| policies::eviction(name))
        .collect::<Result<Vec<_>, _>>()?;
    let admissions = names(admissions, ADMISSION)
        .iter()
        .map(|name| policies::admission(name))
        .collect::<Result<Vec<_>, _>>()?;
    if evictions.is_empty() || admissions_named && admissions.is_empty() {
        bail!("nothing to run: a list names no policy");
    }
    Ok(policies::factories(&evictions, &admissions))
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
