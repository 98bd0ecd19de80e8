//! A certified upper bound on what any policy saves: the dual of the linear program over prefixes.
//!
//! Give every gap between two requests a price per slot. A cache of `C` slots can be charged at most `C` times the sum of
//! the prices, and a request that keeps its first blocks since their last touch pays for each the prices of the gaps. So
//! for any prices at all
//!
//! `U = C * sum of prices + sum over requests of the best prefix's (gain - rent)`
//!
//! is at least what any policy saves: its hits are prefixes too, and its rents sum to no more than the first term.
//! Subgradient steps lower `U`; every iterate is a bound, so it does not matter where they stop.
//!
//! Where a hit needs a saved state, a request that keeps a prefix pays for the state at its end too, for as long as for the
//! last block: any request that passed could have saved it for nothing. A cache in which that is so can do no less than one in
//! which a state has to be kept once it is skipped over, so `U` holds for both.

use crate::gains::{Gains, Piece};
use crate::intervals::{NEVER, Time};

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

/// Prices per slot and gap, as their running sum.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prices {
    /// By request: the sum of the prices of all gaps before it.
    paid: Vec<f64>,
}

impl Prices {
    /// One price for every gap.
    pub(crate) fn constant(requests: usize, price: f64) -> Self {
        Self {
            paid: (0..requests).map(|gaps| gaps as f64 * price).collect(),
        }
    }

    /// The sum of the prices of all gaps before a request; of all gaps for a block that is never used again.
    pub(crate) fn before(&self, time: Time) -> f64 {
        let last = self.paid.last().copied().unwrap_or(0.0);
        if time == NEVER {
            return last;
        }
        self.paid.get(time as usize).copied().unwrap_or(last)
    }

    /// All prices times a factor.
    pub(crate) fn times(&self, factor: f64) -> Self {
        let times = |paid: &f64| paid * factor;
        Self {
            paid: self.paid.iter().map(times).collect(),
        }
    }

    fn sum(&mut self, prices: &[f64]) {
        let mut sum = 0.0;
        for (paid, price) in self.paid.iter_mut().skip(1).zip(prices) {
            sum += price;
            *paid = sum;
        }
    }

    /// The rent of one slot between two touches.
    fn between(&self, from: Time, to: usize) -> f64 {
        self.paid[to] - self.paid[from as usize]
    }
}

/// PFOO-U of Berger, Beckmann and Harchol-Balter (2018): the budget of slots times gaps goes to the pieces that gain most
/// per slot and gap, whatever the load of a single gap. Looser than the dual, but its price is a good first guess.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pfoo {
    /// No policy saves more.
    pub(crate) upper: f64,
    /// Gain per slot and gap of the last piece that was kept; 0 where the budget is not used up.
    pub(crate) price: f64,
}

/// The PFOO-U bound at one capacity.
pub(crate) fn pfoo(gains: &Gains, capacity_blocks: u64) -> Pfoo {
    pfoo_of_slots(gains, capacity_blocks as f64)
}

/// The same where capacity is no whole number of blocks. Saved states count as if they weighed nothing.
pub(crate) fn pfoo_of_slots(gains: &Gains, capacity_slots: f64) -> Pfoo {
    let mut offers = Vec::new();
    for request in 0..gains.requests() {
        for piece in gains.of(request) {
            let gaps = request - piece.from as usize;
            let slots = f64::from(piece.blocks) * gaps as f64;
            offers.push((piece.gain / slots, slots));
        }
    }
    offers.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut budget = capacity_slots * gains.requests().saturating_sub(1) as f64;
    let mut upper = gains.slack();
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

/// Lowers the bound at one capacity, starting from the PFOO price in every gap.
pub(crate) fn prefix_dual(gains: &Gains, capacity_blocks: u64, stop: Stop) -> Dual {
    prefix_dual_of_slots(gains, capacity_blocks as f64, stop)
}

/// The same where capacity is no whole number of blocks.
pub(crate) fn prefix_dual_of_slots(gains: &Gains, capacity_slots: f64, stop: Stop) -> Dual {
    let price = pfoo_of_slots(gains, capacity_slots).price;
    if capacity_slots <= 0.0 {
        return Dual {
            upper: 0.0,
            prices: Prices::constant(gains.requests(), price),
            steps: 0,
        };
    }
    let mut descent = Descent::new(gains, capacity_slots, price);
    let mut steps = 0;
    while steps < stop.steps && !stop.reached(descent.best) && descent.step() {
        steps += 1;
    }
    Dual {
        upper: descent.best,
        prices: descent.best_prices(),
        steps,
    }
}

/// The bound without any prices: what all requests save if each may keep what fits by itself.
pub(crate) fn unpriced(gains: &Gains, capacity_slots: f64) -> f64 {
    let free = Prices::constant(gains.requests(), 0.0);
    let most = |request| best_prefix(gains.of(request), request, &free, capacity_slots).0;
    let sum: f64 = (0..gains.requests()).map(most).sum();
    (sum + gains.slack()) * gains.rounding()
}

impl Stop {
    fn reached(&self, upper: f64) -> bool {
        upper - self.lower <= self.gap * upper
    }
}

/// Share of the last direction that a step keeps.
const MOMENTUM: f64 = 0.9;
/// Steps without a better bound after which the aim is halved.
const PATIENCE: u32 = 20;
/// How far below the best bound the first steps aim, and where there is nothing left to gain: shares of the bound.
const FIRST_AIM: f64 = 0.05;
const LAST_AIM: f64 = 1e-9;
/// What a bound must be lowered by, as a share, not to count as a stall.
const WORTH_NOTING: f64 = 1e-6;

/// Polyak steps towards a level a little below the best bound found: with momentum, and back to the best prices with half
/// the aim when they stall.
struct Descent<'a> {
    gains: &'a Gains,
    capacity_slots: f64,
    /// Per gap.
    price: Vec<f64>,
    direction: Vec<f64>,
    load: Vec<f64>,
    paid: Prices,
    bound: f64,
    best: f64,
    best_price: Vec<f64>,
    aim: f64,
    stalled: u32,
}

impl<'a> Descent<'a> {
    fn new(gains: &'a Gains, capacity_slots: f64, price: f64) -> Self {
        let gaps = gains.requests().saturating_sub(1);
        let mut descent = Self {
            gains,
            capacity_slots,
            price: vec![price; gaps],
            direction: vec![0.0; gaps],
            load: vec![0.0; gains.requests()],
            paid: Prices::constant(gains.requests(), 0.0),
            bound: f64::INFINITY,
            best: f64::INFINITY,
            best_price: vec![price; gaps],
            aim: FIRST_AIM,
            stalled: 0,
        };
        descent.evaluate();
        descent
    }

    /// One step; false where the bound cannot be lowered further.
    fn step(&mut self) -> bool {
        if self.stalled > PATIENCE {
            self.restart();
        }
        let mut square = 0.0;
        for ((direction, price), load) in self.direction.iter_mut().zip(&self.price).zip(&self.load)
        {
            *direction = MOMENTUM * *direction + (self.capacity_slots - load);
            if *price <= 0.0 && *direction > 0.0 {
                *direction = 0.0;
            }
            square += *direction * *direction;
        }
        if square == 0.0 || self.aim < LAST_AIM {
            return false;
        }
        let length = (self.bound - self.best * (1.0 - self.aim)) / square;
        for (price, direction) in self.price.iter_mut().zip(&self.direction) {
            *price = (*price - length * direction).max(0.0);
        }
        self.evaluate();
        true
    }

    fn restart(&mut self) {
        self.aim /= 2.0;
        self.direction.fill(0.0);
        self.price.copy_from_slice(&self.best_price);
        self.evaluate();
        self.stalled = 0;
    }

    /// The bound at the present prices, and the load of every gap under the choices they lead to.
    fn evaluate(&mut self) {
        self.paid.sum(&self.price);
        self.load.fill(0.0);
        let mut bound = self.capacity_slots * self.paid.before(NEVER) + self.gains.slack();
        for request in 0..self.gains.requests() {
            let pieces = self.gains.of(request);
            let (surplus, kept) = best_prefix(pieces, request, &self.paid, self.capacity_slots);
            bound += surplus;
            for (index, piece) in pieces[..kept].iter().enumerate() {
                let state_slots = if index + 1 == kept {
                    piece.state_slots
                } else {
                    0.0
                };
                let slots = f64::from(piece.blocks) + state_slots;
                self.load[piece.from as usize] += slots;
                self.load[request] -= slots;
            }
        }
        let mut sum = 0.0;
        for load in &mut self.load {
            sum += *load;
            *load = sum;
        }
        self.note(bound * self.gains.rounding());
    }

    fn note(&mut self, bound: f64) {
        self.bound = bound;
        self.stalled += 1;
        if bound < self.best {
            if bound < self.best * (1.0 - WORTH_NOTING) {
                self.stalled = 0;
            }
            self.best = bound;
            self.best_price.copy_from_slice(&self.price);
        }
    }

    fn best_prices(mut self) -> Prices {
        self.paid.sum(&self.best_price);
        self.paid
    }
}

/// The largest gain less rent over all prefixes of a request's pieces, and how many pieces it keeps. A state that does not
/// fit together with the prefix above it is none.
fn best_prefix(
    pieces: &[Piece],
    request: usize,
    paid: &Prices,
    capacity_slots: f64,
) -> (f64, usize) {
    let mut best = (0.0, 0);
    let mut surplus = 0.0;
    let mut above = 0.0;
    for (index, piece) in pieces.iter().enumerate() {
        let fits = above + 1.0 + piece.state_slots <= capacity_slots;
        if piece.state_slots > 0.0 && !fits {
            break;
        }
        above += f64::from(piece.blocks);
        let rent = paid.between(piece.from, request);
        surplus += piece.gain - f64::from(piece.blocks) * rent;
        let with_state = surplus - piece.state_slots * rent;
        if with_state > best.0 {
            best = (with_state, index + 1);
        }
    }
    best
}
