//! Warm-ups on the command line.

use anyhow::{Result, bail};
use replay::Warmup;

/// Reads a warm-up: with a point or a percent sign a fraction, else a count of requests.
///
/// # Errors
/// If it is neither, or a fraction outside 0 to 1.
pub fn parse_warmup(text: &str) -> Result<Warmup> {
    let fraction = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        None if text.contains('.') => text.parse().ok(),
        None => match text.parse() {
            Ok(requests) => return Ok(Warmup::Requests(requests)),
            Err(_) => None,
        },
    };
    match fraction {
        Some(share) if (0.0..=1.0).contains(&share) => Ok(Warmup::Fraction(share)),
        _ => bail!(
            "`{text}` is no warm-up: write requests as 1000, or a share of them as 0.5 or 50%"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_or_percent_makes_a_fraction() {
        let parse = |text| parse_warmup(text).ok();
        assert_eq!(parse("1000"), Some(Warmup::Requests(1000)));
        assert_eq!(parse("1"), Some(Warmup::Requests(1)));
        assert_eq!(parse("1.0"), Some(Warmup::Fraction(1.0)));
        assert_eq!(parse("50%"), Some(Warmup::Fraction(0.5)));
        for wrong in ["", "-1", "1.5", "101%", "half", "NaN%"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
