//! The search for good prices: subgradient steps first, then a primal-dual method where those are not near enough.

use crate::descent::Descent;
use crate::dual::{Dual, Stop, free_bound, pfoo};
use crate::prefix_program::PrefixProgram;
use crate::prices::Prices;
use crate::primal_dual::PrimalDual;

/// Subgradient steps from the PFOO price in every gap.
pub(crate) fn first_dual(program: &PrefixProgram, stop: Stop) -> Dual {
    free_bound(program, stop).unwrap_or_else(|| {
        let first_price = pfoo(program, program.room()[0]).price;
        let found = Descent::new(program, first_price).descend(stop);
        let free = program.ceiling();
        if found.upper <= free {
            return found;
        }
        Dual {
            upper: free,
            prices: Prices::constant(program.requests(), 0.0),
            ..found
        }
    })
}

/// Lowers a bound further, where that is not near enough and there are steps left. The program may have more kinds of rows
/// than the one of `first`.
pub(crate) fn better_dual(program: &PrefixProgram, first: &Dual, stop: Stop) -> Dual {
    if stop.reached(first.upper) || free_bound(program, stop).is_some() {
        return first.clone();
    }
    let stop = Stop {
        steps: stop.steps - first.steps,
        ..stop
    };
    let found = PrimalDual::new(program, &first.prices).descend(stop);
    let steps = first.steps + found.steps;
    let lower = if found.upper < first.upper {
        found
    } else {
        first.clone()
    };
    Dual { steps, ..lower }
}
