//! A certified upper bound on what any policy saves: the dual of the linear program over prefixes (`prefix_program.rs`).
//!
//! Give every row of the program a price, and let the requests pay for the room that their hits take. All of them together
//! pay at most price × room, summed over the rows. So for any prices ≥ 0
//!
//! `U = Σ price × room + Σ over requests of the largest (gain − rent) of a prefix`
//!
//! is at least what any policy saves: its hits are prefixes that fit, and their rents sum to no more than the first term.
//! Which prices are good is a matter of search (`descent.rs`, then `primal_dual.rs`); that `U` is a bound is not.
//!
//! Prices are kept as running sums, which makes the rent of a range of rows one difference. They are taken as they are: the
//! price of a row *is* the difference of two neighbouring sums, so that no rounding of a sum can make a rent too high.

use crate::descent::Descent;
use crate::intervals::{NEVER, Time};
use crate::prefix_program::{Charge, PrefixProgram};
use crate::primal_dual::PrimalDual;

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

/// Prices of all rows, as running sums over the rows of each kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prices {
    /// By row: the sum of the prices of all rows of its kind before it. Never falls within a kind.
    pub(crate) paid: Vec<f64>,
    rows_per_kind: usize,
}

impl Prices {
    /// One price for the slots of every gap, and none for shares.
    pub(crate) fn constant(requests: usize, price: f64) -> Self {
        Self {
            paid: (0..requests).map(|gaps| gaps as f64 * price).collect(),
            rows_per_kind: requests,
        }
    }

    /// Running sums of prices, by row. The last row of a kind, the gap after the last request, has no price.
    pub(crate) fn of_rows(prices: &[f64], rows_per_kind: usize) -> Self {
        let mut summed = Self {
            paid: vec![0.0; prices.len()],
            rows_per_kind,
        };
        summed.sum(prices);
        summed
    }

    pub(crate) fn sum(&mut self, prices: &[f64]) {
        let kinds = prices.chunks(self.rows_per_kind.max(1));
        for (paid, prices) in self.paid.chunks_mut(self.rows_per_kind.max(1)).zip(kinds) {
            let mut sum = 0.0;
            for (paid, price) in paid.iter_mut().zip(prices) {
                *paid = sum;
                sum += price;
            }
        }
    }

    /// The price of every row. Kinds of rows that have none are free.
    pub(crate) fn of_each_row(&self, rows: usize) -> Vec<f64> {
        let mut prices = vec![0.0; rows];
        let kinds = self.paid.chunks(self.rows_per_kind.max(1));
        for (prices, paid) in prices.chunks_mut(self.rows_per_kind.max(1)).zip(kinds) {
            for (price, two) in prices.iter_mut().zip(paid.windows(2)) {
                *price = two[1] - two[0];
            }
        }
        prices
    }

    /// The sum of the prices of all slots before a request; of all slots for a block that is never used again.
    pub(crate) fn before(&self, time: Time) -> f64 {
        let slots = &self.paid[..self.rows_per_kind];
        let last = slots.last().copied().unwrap_or(0.0);
        if time == NEVER {
            return last;
        }
        slots.get(time as usize).copied().unwrap_or(last)
    }

    /// The running sums of each kind of rows.
    pub(crate) fn by_kind(&self) -> impl Iterator<Item = &[f64]> {
        self.paid.chunks(self.rows_per_kind.max(1))
    }

    /// All prices times a factor.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let times = |paid: &f64| paid * factor;
        Self {
            paid: self.paid.iter().map(times).collect(),
            rows_per_kind: self.rows_per_kind,
        }
    }

    /// What room in a range of rows costs.
    pub(crate) fn rent(&self, charges: &[Charge]) -> f64 {
        let rent = |charge: &Charge| {
            let prices = self.paid[charge.end_row as usize] - self.paid[charge.first_row as usize];
            charge.weight * prices
        };
        charges.iter().map(rent).sum()
    }

    /// The price of all room.
    pub(crate) fn of_all_room(&self, program: &PrefixProgram) -> f64 {
        let kinds = self.paid.chunks(self.rows_per_kind.max(1));
        let of_kind = |(paid, room): (&[f64], &f64)| paid.last().map_or(0.0, |sum| sum * room);
        kinds.zip(program.room()).map(of_kind).sum()
    }
}

/// The bound at prices of all rows.
pub(crate) fn bound(program: &PrefixProgram, prices: &Prices) -> f64 {
    let surplus = |request| program.best_prefix(request, prices).0;
    let surpluses: f64 = (0..program.requests()).map(surplus).sum();
    let sum = prices.of_all_room(program) + surpluses + program.understated();
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
