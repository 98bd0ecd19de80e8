//! Capacities on the command line.

use std::str::FromStr;

use anyhow::{Result, bail};

/// A capacity as one writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// `62.5GB`, `512MiB`, `0`: memory.
    Bytes(u64),
    /// `10%` of the trace's distinct blocks, rounded down.
    PercentOfDistinct(f64),
    /// `4096blocks`.
    Blocks(u64),
}

const UNITS: [(&str, f64); 11] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PB", 1e15),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

impl Capacity {
    /// The capacity in bytes for a trace with so many distinct blocks of so many bytes.
    pub fn bytes(self, distinct_blocks: u32, block_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::PercentOfDistinct(percent) => {
                ((f64::from(distinct_blocks) * percent / 100.0) as u64).saturating_mul(block_bytes)
            }
            Self::Blocks(blocks) => blocks.saturating_mul(block_bytes),
        }
    }
}

impl FromStr for Capacity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let number = |digits: &str| {
            digits
                .trim()
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite() && *n >= 0.0)
        };
        if let Some(percent) = text.strip_suffix('%').and_then(number) {
            return Ok(Self::PercentOfDistinct(percent));
        }
        let blocks = text
            .strip_suffix("blocks")
            .or_else(|| text.strip_suffix("block"));
        if let Some(blocks) = blocks.and_then(|digits| digits.trim().parse().ok()) {
            return Ok(Self::Blocks(blocks));
        }
        let bytes = UNITS
            .iter()
            .find_map(|(unit, bytes)| Some(number(text.strip_suffix(unit)?)? * bytes))
            .or_else(|| number(text).filter(|bytes| *bytes == 0.0));
        match bytes {
            Some(bytes) if bytes < u64::MAX as f64 => Ok(Self::Bytes(bytes.round() as u64)),
            _ => bail!(
                "`{text}` is no capacity: write bytes as 62.5GB or 40GiB (kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB), a share of distinct blocks as 10%, or 4096blocks"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Capacity> {
        text.parse().ok()
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(parse("62.5GB"), Some(Capacity::Bytes(62_500_000_000)));
        assert_eq!(parse("1 GiB"), Some(Capacity::Bytes(1 << 30)));
        assert_eq!(parse("0"), Some(Capacity::Bytes(0)));
        assert_eq!(parse("4096blocks"), Some(Capacity::Blocks(4096)));
        assert_eq!(parse("2.5%"), Some(Capacity::PercentOfDistinct(2.5)));
        for wrong in [
            "",
            "ten",
            "-1GB",
            "5",
            "1.5blocks",
            "infGB",
            "%",
            "GB",
            "1e400GB",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn percents_round_down() {
        assert_eq!(
            Capacity::PercentOfDistinct(1.0).bytes(1_186_962, 2),
            11_869 * 2
        );
        assert_eq!(Capacity::PercentOfDistinct(29.0).bytes(100, 1), 29);
        assert_eq!(Capacity::Blocks(u64::MAX).bytes(1, 2), u64::MAX);
    }
}
