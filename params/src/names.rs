//! Names out of a registry.

/// How similar a name must be to be suggested (Jaro-Winkler).
const SIMILAR: f64 = 0.7;

/// No entry has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`; {}", hint(.nearest.as_deref(), .valid))]
pub struct UnknownName {
    /// What was looked for, as `eviction policy`.
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The most similar name, where one is similar.
    pub nearest: Option<String>,
    /// All names.
    pub valid: Vec<String>,
}

fn hint(nearest: Option<&str>, valid: &[String]) -> String {
    let list = valid.join(", ");
    match nearest {
        None => format!("valid ones: {list}"),
        Some(name) => format!("did you mean `{name}`? Valid ones: {list}"),
    }
}

/// The entry of that name, whatever the case of its letters.
///
/// # Errors
/// [`UnknownName`], with the most similar name and all valid ones.
pub fn find<'e, E>(
    kind: &'static str,
    entries: &'e [E],
    name_of: impl Fn(&E) -> &str,
    name: &str,
) -> Result<&'e E, UnknownName> {
    let found = entries
        .iter()
        .find(|entry| name_of(entry).eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let valid: Vec<_> = entries
            .iter()
            .map(|entry| name_of(entry).to_owned())
            .collect();
        UnknownName {
            kind,
            name: name.to_owned(),
            nearest: nearest(name, &valid),
            valid,
        }
    })
}

pub(crate) fn nearest(name: &str, valid: &[impl AsRef<str>]) -> Option<String> {
    let lower = name.to_lowercase();
    let similarity = |valid: &&str| strsim::jaro_winkler(&lower, valid);
    valid
        .iter()
        .map(AsRef::as_ref)
        .max_by(|a, b| similarity(a).total_cmp(&similarity(b)))
        .filter(|valid| similarity(valid) > SIMILAR)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(name: &str) -> Result<&'static &'static str, UnknownName> {
        find("fruit", &["apple", "pear"], |name| name, name)
    }

    #[test]
    fn case_does_not_matter() {
        assert_eq!(look_up("Apple"), Ok(&"apple"));
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        assert_eq!(
            look_up("appel").unwrap_err().to_string(),
            "there is no fruit `appel`; did you mean `apple`? Valid ones: apple, pear"
        );
        assert_eq!(
            look_up("zzz").unwrap_err().to_string(),
            "there is no fruit `zzz`; valid ones: apple, pear"
        );
    }
}
