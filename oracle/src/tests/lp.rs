//! The linear programs that the certified bounds relax, solved by a library.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use trace::{NO_BLOCK, Workload};

use super::support::{BlockInterval, block_intervals};

/// Which residents must come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closure {
    /// None.
    Flat,
    /// The hits of a request are a prefix.
    Prefix,
    /// The hits of a request are a prefix, and fit into the cache.
    Fitting,
    /// A block is held over a gap only with its parent.
    Tree,
}

/// The optimum of the interval program: hold each interval by a share from 0 to 1, at most the capacity over any gap.
pub(crate) fn interval_program(
    workload: &Workload,
    capacity_blocks: u32,
    closure: Closure,
    saved: impl Fn(u32, u32) -> f64,
) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let mut held: Vec<(BlockInterval, Variable)> = Vec::new();
    for interval in block_intervals(workload) {
        if closure == Closure::Fitting && interval.depth >= capacity_blocks {
            continue;
        }
        if interval.gainful || closure == Closure::Tree {
            let gain = saved(interval.to, interval.depth + 1) - saved(interval.to, interval.depth);
            let gain = if interval.gainful { gain } else { 0.0 };
            held.push((interval, problem.add_var(gain, (0.0, 1.0))));
        }
    }
    for gap in 0..workload.requests().len().saturating_sub(1) as u32 {
        let over = held.iter().filter(|(i, _)| i.from <= gap && gap < i.to);
        let load: Vec<_> = over.map(|(_, variable)| (*variable, 1.0)).collect();
        let most = f64::from(capacity_blocks);
        problem.add_constraint(&load, ComparisonOp::Le, most);
    }
    for (child, held_child) in &held {
        for (parent, held_parent) in &held {
            if tied(workload, closure, child, parent) {
                let both = [(*held_child, 1.0), (*held_parent, -1.0)];
                problem.add_constraint(both, ComparisonOp::Le, 0.0);
            }
        }
    }
    let solution = problem.solve().unwrap().into_solution().unwrap();
    solution.objective()
}

fn tied(
    workload: &Workload,
    closure: Closure,
    child: &BlockInterval,
    parent: &BlockInterval,
) -> bool {
    let parent_of_child = workload.parents()[child.block.index()];
    if parent_of_child == NO_BLOCK || parent_of_child != parent.block {
        return false;
    }
    match closure {
        Closure::Flat => false,
        Closure::Prefix | Closure::Fitting => parent.to == child.to,
        Closure::Tree => child.from <= parent.from && parent.to <= child.to,
    }
}
