//! The exact optimum of small instances, to check everything else against.

use std::collections::BTreeMap;

use policy_api::BlockId;
use trace::{NO_BLOCK, Request, Workload};

use crate::intervals::Time;

/// Distinct blocks that a trace may have at most: residents are a set of bits.
pub(crate) const MOST_BLOCKS: u32 = 32;

/// The most that any policy saves over the whole trace, by a dynamic program over all sets of residents in which every
/// block has its parent. `saved(i, hit_blocks)` is what request `i` saves. `None` for more than [`MOST_BLOCKS`] distinct
/// blocks; the time grows exponentially with them, so a dozen is plenty.
pub(crate) fn optimum(
    workload: &Workload,
    capacity_blocks: u32,
    saved: impl Fn(Time, u32) -> f64,
) -> Option<f64> {
    if workload.distinct_blocks() > MOST_BLOCKS {
        return None;
    }
    let mut best = BTreeMap::from([(0_u32, 0.0)]);
    for (time, request) in (0..).zip(workload.requests()) {
        let path = bits(workload.path(request));
        let mut after = BTreeMap::new();
        for (resident, so_far) in best {
            let total = so_far + saved(time, hit_blocks(workload, request, resident));
            for kept in keepable(workload, resident | path, capacity_blocks) {
                let known = after.entry(kept).or_insert(total);
                *known = known.max(total);
            }
        }
        best = after;
    }
    best.into_values().reduce(f64::max)
}

fn bits(path: &[BlockId]) -> u32 {
    path.iter().fold(0, |bits, block| bits | 1 << block.0)
}

fn hit_blocks(workload: &Workload, request: &Request, resident: u32) -> u32 {
    let held = workload
        .path(request)
        .iter()
        .take_while(|block| resident >> block.0 & 1 == 1)
        .zip(0..workload.usable_blocks(request))
        .count();
    u32::try_from(held).expect("few blocks")
}

/// The largest sets that fit: whatever a smaller set allows, a larger one around it does too.
fn keepable(workload: &Workload, offered: u32, capacity_blocks: u32) -> Vec<u32> {
    let mut sets = vec![offered];
    for _ in capacity_blocks..offered.count_ones() {
        let mut smaller: Vec<_> = sets
            .iter()
            .flat_map(|set| leaves(workload, *set).map(move |leaf| set & !leaf))
            .collect();
        smaller.sort_unstable();
        smaller.dedup();
        sets = smaller;
    }
    sets
}

/// The blocks of a set that have no child in it, one bit each.
fn leaves(workload: &Workload, set: u32) -> impl Iterator<Item = u32> {
    let blocks = (0..workload.distinct_blocks()).filter(move |block| set >> block & 1 == 1);
    let parents = blocks
        .clone()
        .map(|block| workload.parents()[block as usize])
        .filter(|parent| *parent != NO_BLOCK)
        .fold(0_u32, |parents, parent| parents | 1 << parent.0);
    blocks
        .map(|block| 1 << block)
        .filter(move |bit| parents & bit == 0)
}
