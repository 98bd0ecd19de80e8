//! Quantities with units.

/// Beyond this many microseconds (285 years) a float no longer tells neighbours apart.
const LONGEST_US: f64 = 9_007_199_254_740_992.0;

const DURATIONS_US: [(&str, f64); 5] = [
    ("ms", 1e3),
    ("us", 1.0),
    ("s", 1e6),
    ("m", 6e7),
    ("h", 3.6e9),
];

/// Larger units first where one ends like another.
const SIZES_BYTES: [(&str, f64); 17] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("PB", 1e15),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("k", 1e3),
    ("K", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("B", 1.0),
];

/// Microseconds of a duration as `250ms`, `90s`, `5m` or `2h`; a bare number is seconds.
pub fn duration_us(text: &str) -> Option<i64> {
    let text = text.trim();
    let (digits, unit_us) = with_unit(text, &DURATIONS_US).unwrap_or((text, 1e6));
    let us = digits.trim().parse::<f64>().ok()? * unit_us;
    (0.0..LONGEST_US).contains(&us).then_some(us as i64)
}

/// Bytes of a size as `62.5GB`, `62.5G` or `40GiB`. A bare number other than 0 is no size: it could be blocks.
pub fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit_bytes) =
        with_unit(text, &SIZES_BYTES).or_else(|| (number(text)? == 0.0).then_some((text, 1.0)))?;
    let bytes = number(digits)? * unit_bytes;
    (bytes < u64::MAX as f64).then(|| bytes.round() as u64)
}

/// A share from 0 to 1, written as `0.5` or `50%`.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    (share <= 1.0).then_some(share)
}

fn with_unit<'t>(text: &'t str, units: &[(&str, f64)]) -> Option<(&'t str, f64)> {
    units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
}

/// A finite number that is not negative.
fn number(text: &str) -> Option<f64> {
    let number = text.trim().parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_us("250ms"), Some(250_000));
        assert_eq!(duration_us("2h"), Some(7_200_000_000));
        assert_eq!(duration_us("1.5"), Some(1_500_000));
        for wrong in ["fast", "-1s", "NaNs", "1e300h", ""] {
            assert_eq!(duration_us(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size_bytes("62.5GB"), Some(62_500_000_000));
        assert_eq!(size_bytes("62.5G"), Some(62_500_000_000));
        assert_eq!(size_bytes("1 GiB"), Some(1 << 30));
        assert_eq!(size_bytes("0"), Some(0));
        for wrong in ["", "ten", "-1GB", "5", "infGB", "GB", "1e400GB", "1e30TB"] {
            assert_eq!(size_bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shares_are_within_one() {
        assert_eq!(share("50%"), Some(0.5));
        assert_eq!(share("0.005"), Some(0.005));
        for wrong in ["1.5", "101%", "-1%", "NaN", "half", ""] {
            assert_eq!(share(wrong), None, "{wrong}");
        }
    }
}
