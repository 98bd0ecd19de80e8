//! A certified upper bound on what any policy saves: the dual of the linear program over prefixes (`prefix_program.rs`).
//!
//! Give every row of the program a price, and let the requests pay for the room that their hits take. All of them together
//! pay at most price × room, summed over the rows. So for any prices ≥ 0
//!
//! `U = Σ price × room + Σ over requests of the largest (gain − rent) of a prefix`
//!
//! is at least what any policy saves: its hits are prefixes that fit, and their rents sum to no more than the first term.
//! Which prices are good is a matter of search (`descent.rs`, then `primal_dual.rs`); that `U` is a bound is not.

use crate::prefix_program::PrefixProgram;
use crate::prices::Prices;

/// When to stop lowering the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    /// After this many steps.
    pub(crate) steps: u32,
    /// Where the bound is within this share of itself of `lower`.
    pub(crate) gap: f64,
    /// What is known to be feasible.
    pub(crate) lower: f64,
}

impl Stop {
    pub(crate) fn reached(&self, upper: f64) -> bool {
        upper - self.lower <= self.gap * upper
    }
}

/// The bound and the prices that prove it.
#[derive(Clone, Debug)]
pub(crate) struct Dual {
    /// No policy saves more.
    pub(crate) upper: f64,
    /// The prices at which the bound was found.
    pub(crate) prices: Prices,
    /// Steps taken.
    pub(crate) steps: u32,
}

/// The bound at prices of all rows.
pub(crate) fn bound(program: &PrefixProgram, prices: &Prices) -> f64 {
    let surplus = |request| program.best_prefix(request, prices).0;
    let surpluses: f64 = (0..program.requests()).map(surplus).sum();
    let sum = prices.of_all_room(program.room()) + surpluses + program.understated();
    sum * program.rounding()
}

/// PFOO-U of Berger, Beckmann and Harchol-Balter (2018): the budget of slots times gaps is spent on the pieces that gain most
/// per slot and gap, whatever the load of a single gap. Looser than the dual, but its price is a good first guess.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pfoo {
    /// No policy saves more.
    pub(crate) upper: f64,
    /// Gain per slot and gap of the last piece that was kept; 0 where the budget is not used up.
    pub(crate) price: f64,
}

/// The PFOO-U bound at one capacity. Saved states count as if they weighed nothing.
pub(crate) fn pfoo(program: &PrefixProgram, capacity_slots: f64) -> Pfoo {
    let mut offers = Vec::new();
    for request in 0..program.requests() {
        for piece in &program.pieces()[program.of(request)] {
            let gaps = request - piece.from as usize;
            let slots = f64::from(piece.blocks) * gaps as f64;
            offers.push((piece.gain / slots, slots));
        }
    }
    offers.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut budget = capacity_slots * program.requests().saturating_sub(1) as f64;
    let mut upper = program.understated();
    for (price, slots) in offers {
        if price <= 0.0 {
            break;
        }
        upper += price * slots.min(budget);
        budget -= slots;
        if budget <= 0.0 {
            return Pfoo { upper, price };
        }
    }
    Pfoo { upper, price: 0.0 }
}

/// The bound that needs no search: what all requests save if each may keep what fits by itself. Enough where it is near
/// enough, or all of that fits together.
pub(crate) fn free_bound(program: &PrefixProgram, stop: Stop) -> Option<Dual> {
    let upper = program.ceiling();
    let is_enough = program.room()[0] <= 0.0 || stop.reached(upper) || program.all_fits();
    is_enough.then(|| Dual {
        upper,
        prices: Prices::constant(program.requests(), 0.0),
        steps: 0,
    })
}
