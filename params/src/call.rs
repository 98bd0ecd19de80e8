//! `name(key=value,key=value)`, and lists of such.

/// A name with its arguments, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'t> {
    /// The name.
    pub name: &'t str,
    /// What stands between the parentheses; empty where there are none.
    pub arguments: &'t str,
}

/// The parentheses do not close.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` should look like name or name(key=value,key=value)")]
pub struct Malformed(pub String);

impl<'t> Call<'t> {
    /// Reads `name` or `name(arguments)`.
    ///
    /// # Errors
    /// [`Malformed`] if a parenthesis opens and the text does not end with a closing one.
    pub fn parse(text: &'t str) -> Result<Self, Malformed> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return Ok(Self {
                name: text,
                arguments: "",
            });
        };
        let arguments = rest
            .strip_suffix(')')
            .ok_or_else(|| Malformed(text.to_owned()))?;
        Ok(Self {
            name: name.trim(),
            arguments,
        })
    }
}

/// Splits at commas outside parentheses and drops empty parts: `lru,slru(threshold=2,x=1)` are two.
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
    fn a_call_has_a_name_and_arguments() {
        let call = |text| Call::parse(text).map(|call| (call.name, call.arguments));
        assert_eq!(call(" lru "), Ok(("lru", "")));
        assert_eq!(call("slru (a=1, b=2)"), Ok(("slru", "a=1, b=2")));
        assert_eq!(call("lru("), Err(Malformed("lru(".to_owned())));
    }

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
