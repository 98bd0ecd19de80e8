//! Lists on the command line.

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
