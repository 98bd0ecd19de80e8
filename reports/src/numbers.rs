//! Numbers as people read them.

/// Digits in groups of three: `1,186,962`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage with two decimals; a dash where there is none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.2}%", share * 100.0))
}

/// Bytes in decimal units, as memory is sold: `62.5 GB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let count = count as f64;
    match UNITS.iter().find(|(_, unit)| count >= *unit) {
        Some((name, unit)) => {
            let text = format!("{:.2}", count / unit);
            format!(
                "{} {name}",
                text.trim_end_matches('0').trim_end_matches('.')
            )
        }
        None => format!("{count} B"),
    }
}

/// Four significant digits, without an exponent where it reads well.
pub(crate) fn four_digits(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let digits = 3 - value.abs().max(1e-3).log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 6) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_186_962), "1,186,962");
        assert_eq!(percent(Some(0.3734)), "37.34%");
        assert_eq!(percent(None), "-");
        assert_eq!(bytes(62_500_000_000), "62.5 GB");
        assert_eq!(bytes(1_000_000_000), "1 GB");
        assert_eq!(bytes(512), "512 B");
    }
}
