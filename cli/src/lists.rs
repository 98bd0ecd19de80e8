//! Lists on the command line.

use anyhow::{Result, bail};
use policies::{ADMISSION, EVICTION, Entry, PolicyPair};

/// On the command line: every policy of the registry.
pub const EVERY: &str = "every";

/// Every eviction policy of some lists with every admission policy of others; where no admission policy is named, with the one
/// that it comes with.
///
/// # Errors
/// If a name or a parameter is not known, or no eviction policy is named; the error lists what is valid.
pub fn policy_pairs(evictions: &[String], admissions: &[String]) -> Result<Vec<PolicyPair>> {
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
    Ok(policies::pairs(&evictions, &admissions))
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

/// Splits at commas outside parentheses: `lru,slru(threshold=2,x=1)` are two.
pub fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0usize;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("never empty").push(letter);
    }
    parts
        .iter()
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_parentheses_do_not_split() {
        assert_eq!(
            split_list("lru, a(b=1,c=2),fifo"),
            ["lru", "a(b=1,c=2)", "fifo"]
        );
        assert_eq!(split_list("10%,4096blocks"), ["10%", "4096blocks"]);
        assert_eq!(split_list("a(b=1"), ["a(b=1"]);
        assert!(split_list(",").is_empty());
    }
}
