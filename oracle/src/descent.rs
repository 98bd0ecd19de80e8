//! First prices for the linear program over prefixes, by subgradient steps.
//!
//! At given prices every request keeps its best prefix. Where that overfills a row, raising its price lowers the bound; where
//! room is left over, lowering it does. So `room − load` is the direction in which the bound rises. A step goes the other way,
//! as far as it would take to reach a target a little below the best bound so far (Polyak 1969).
//!
//! The bound has kinks everywhere, so single steps zigzag: each keeps most of the direction of the last, which cancels the
//! zigzag. Where no step helps any more the target was too low: start again from the best prices, with half the distance.

use crate::dual::{Dual, Stop};
use crate::prefix_program::PrefixProgram;
use crate::prices::Prices;

/// Share of the last direction that a step keeps.
const MOMENTUM: f64 = 0.9;
/// Steps without a better bound after which the target is moved nearer.
const PATIENCE: u32 = 20;
/// How far below the best bound the first steps aim, and where there is nothing left to gain: shares of the bound.
const FIRST_DISTANCE: f64 = 0.05;
const LAST_DISTANCE: f64 = 1e-9;
/// What a bound must be lowered by, as a share, to count as better.
const WORTH_COUNTING: f64 = 1e-6;

pub(crate) struct Descent<'a> {
    program: &'a PrefixProgram,
    /// By row.
    price: Vec<f64>,
    direction: Vec<f64>,
    load: Vec<f64>,
    paid: Prices,
    bound: f64,
    best: f64,
    best_price: Vec<f64>,
    /// Of the target below the best bound, as a share of it.
    distance: f64,
    steps_without_gain: u32,
}

impl<'a> Descent<'a> {
    /// Starts with one price in every gap.
    pub(crate) fn new(program: &'a PrefixProgram, first_price: f64) -> Self {
        let rows = program.rows();
        let gaps = program.rows_per_kind() - 1;
        let mut price = vec![0.0; rows];
        price[..gaps].fill(first_price);
        let mut descent = Self {
            paid: Prices::of_rows(&price, program.rows_per_kind()),
            direction: vec![0.0; rows],
            load: vec![0.0; rows],
            bound: f64::INFINITY,
            best: f64::INFINITY,
            best_price: price.clone(),
            price,
            distance: FIRST_DISTANCE,
            steps_without_gain: 0,
            program,
        };
        descent.evaluate();
        descent
    }

    /// Steps until the bound is good enough, or cannot be lowered further.
    pub(crate) fn descend(mut self, stop: Stop) -> Dual {
        let mut steps = 0;
        while steps < stop.steps && !stop.reached(self.best) && self.step() {
            steps += 1;
        }
        self.paid.sum(&self.best_price);
        Dual {
            upper: self.best,
            prices: self.paid,
            steps,
        }
    }

    /// One step; false where the bound cannot be lowered further.
    fn step(&mut self) -> bool {
        if self.steps_without_gain > PATIENCE {
            self.restart();
        }
        let mut square = 0.0;
        for (row, direction) in self.direction.iter_mut().enumerate() {
            let room_left = self.program.room_of_row(row) - self.load[row];
            *direction = MOMENTUM * *direction + room_left;
            // A price of 0 cannot be lowered; the step would be too short for all others if it counted.
            if self.price[row] <= 0.0 && *direction > 0.0 {
                *direction = 0.0;
            }
            square += *direction * *direction;
        }
        if square == 0.0 || self.distance < LAST_DISTANCE {
            return false;
        }
        let length = (self.bound - self.best * (1.0 - self.distance)) / square;
        for (price, direction) in self.price.iter_mut().zip(&self.direction) {
            *price = (*price - length * direction).max(0.0);
        }
        self.evaluate();
        true
    }

    fn restart(&mut self) {
        self.distance /= 2.0;
        self.direction.fill(0.0);
        self.price.copy_from_slice(&self.best_price);
        self.evaluate();
        self.steps_without_gain = 0;
    }

    /// The bound at the present prices, and the load of every row under the prefixes that are best then.
    fn evaluate(&mut self) {
        self.paid.sum(&self.price);
        self.load.fill(0.0);
        let mut bound = self.paid.of_all_room(self.program.room()) + self.program.understated();
        for request in 0..self.program.requests() {
            let (surplus, kept) = self.program.best_prefix(request, &self.paid);
            bound += surplus;
            for piece in kept {
                self.program.add_load(&mut self.load, piece, 1.0);
            }
        }
        running_sum(&mut self.load);
        self.record(bound * self.program.rounding());
    }

    fn record(&mut self, bound: f64) {
        self.bound = bound;
        self.steps_without_gain += 1;
        if bound < self.best {
            if bound < self.best * (1.0 - WORTH_COUNTING) {
                self.steps_without_gain = 0;
            }
            self.best = bound;
            self.best_price.copy_from_slice(&self.price);
        }
    }
}

/// Sums changes of load. Kinds of rows need no border: every charge ends within its kind, so the sum is 0 at its end.
pub(crate) fn running_sum(load: &mut [f64]) {
    let mut sum = 0.0;
    for load in load {
        sum += *load;
        *load = sum;
    }
}
