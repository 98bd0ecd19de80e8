//! What a leaf is worth for its size.

use policy_api::Candidate;

/// Seconds of recompute that a hit on the whole leaf would save, per GB that it takes.
pub(crate) fn seconds_per_gb(leaf: &Candidate) -> f64 {
    without_noise(leaf.recompute.seconds * 1e9 / bytes(leaf))
}

/// What the leaf takes, for a divisor: a state of no bytes takes one.
pub(crate) fn bytes(leaf: &Candidate) -> f64 {
    leaf.bytes.max(1) as f64
}

/// The number to seven digits. Where a cost model is linear all nodes are worth the same but for rounding errors, and rules
/// of ties should decide then, not these.
pub(crate) fn without_noise(value: f64) -> f64 {
    f64::from(value as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::leaf;
    use policy_api::Work;

    #[test]
    fn what_is_equal_but_for_rounding_is_equal() {
        let node = |blocks: u32| Candidate {
            bytes: u64::from(blocks) * 131_072,
            recompute: Work {
                seconds: f64::from(blocks) * 2.726e-5,
                flops: 0.0,
            },
            ..leaf(1)
        };
        assert!((1..1000).all(|blocks| seconds_per_gb(&node(blocks)) == seconds_per_gb(&node(1))));
    }
}
