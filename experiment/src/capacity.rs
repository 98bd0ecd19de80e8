//! Capacities as people write them.

use std::str::FromStr;

/// A capacity that may depend on the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// `62.5GB`, `512MiB`, `0`: memory.
    Bytes(u64),
    /// `10%` of the trace's distinct blocks, rounded down.
    PercentOfDistinct(f64),
    /// `4096blocks`.
    Blocks(u64),
}

/// Not a capacity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no capacity: write bytes as 62.5GB or 40GiB (kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB), a share of distinct blocks as 10%, or 4096blocks"
)]
pub struct NotACapacity(String);

impl Capacity {
    /// The capacity in bytes for a trace with `distinct_blocks` of `block_bytes` each.
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
    type Err = NotACapacity;

    fn from_str(text: &str) -> Result<Self, NotACapacity> {
        let text = text.trim();
        let percent = text.strip_suffix('%').and_then(|digits| {
            let percent = digits.trim().parse::<f64>().ok()?;
            (percent.is_finite() && percent >= 0.0).then_some(Self::PercentOfDistinct(percent))
        });
        let blocks = || {
            let digits = text
                .strip_suffix("blocks")
                .or_else(|| text.strip_suffix("block"))?;
            digits.trim().parse().ok().map(Self::Blocks)
        };
        percent
            .or_else(blocks)
            .or_else(|| params::size_bytes(text).map(Self::Bytes))
            .ok_or_else(|| NotACapacity(text.to_owned()))
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
        assert_eq!(parse("0"), Some(Capacity::Bytes(0)));
        assert_eq!(parse("4096blocks"), Some(Capacity::Blocks(4096)));
        assert_eq!(parse("2.5%"), Some(Capacity::PercentOfDistinct(2.5)));
        for wrong in ["", "ten", "-1GB", "5", "1.5blocks", "%", "-1%", "inf%"] {
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
