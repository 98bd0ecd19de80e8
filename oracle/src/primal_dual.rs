//! Good prices for the linear program over prefixes, by a primal-dual method.
//!
//! The method (Chambolle and Pock 2011, with the restarts of PDLP by Applegate et al. 2021) moves the shares that are kept
//! towards what they gain less their rent, and the prices towards where room is overfull, in steps of lengths that fit the
//! weights of each (Pock and Chambolle 2011). The averages of such steps converge to a best pair; starting anew from the
//! average, now and then, makes them converge fast. Prices found on the way prove a bound whatever they are; shares, scaled
//! until they fit, tell how near the bound is to the optimum of the program.

use crate::descent::running_sum;
use crate::dual::{Dual, Stop, bound};
use crate::prefix_program::PrefixProgram;
use crate::prices::Prices;

/// The averages are looked at every so many steps.
const LOOK_STEPS: u32 = 40;
/// Starts anew where the averages are nearer to the optimum by this factor than at the last start …
const MUCH_NEARER: f64 = 0.2;
/// … or by this one, if they come no nearer.
const NEARER: f64 = 0.8;
/// Starts anew after this share of all steps at the latest.
const LONGEST_STRETCH: f64 = 0.36;
/// Near enough to the optimum of the program, as a share of the bound.
const CONVERGED: f64 = 5e-5;
/// Of the longest steps that converge.
const STEP_SHARE: f64 = 0.98;

/// Shares that are kept, by piece, and prices, by row.
#[derive(Clone)]
struct Pair {
    shares: Vec<f64>,
    prices: Vec<f64>,
}

pub(crate) struct PrimalDual<'a> {
    program: &'a PrefixProgram,
    /// By row.
    room: Vec<f64>,
    /// By piece: weights times rows.
    piece_weight: Vec<f64>,
    /// By row: weights of all pieces.
    row_weight: Vec<f64>,
    /// How long steps in prices are against steps in shares.
    balance: f64,
    now: Pair,
    sum: Pair,
    summed: u32,
    /// Running sums of the present prices.
    paid: Prices,
    load: Vec<f64>,
    best: f64,
    best_prices: Prices,
}

impl<'a> PrimalDual<'a> {
    /// Starts at some prices, with the prefixes that are best then.
    pub(crate) fn new(program: &'a PrefixProgram, first: &Prices) -> Self {
        let gaps = program.rows_per_kind();
        let room: Vec<f64> = program
            .room()
            .iter()
            .flat_map(|room| vec![*room; gaps])
            .collect();
        let prices = first.of_each_row(room.len());
        let paid = Prices::of_rows(&prices, gaps);
        let mut shares = vec![0.0; program.pieces().len()];
        for request in 0..program.requests() {
            shares[program.best_prefix(request, &paid).1].fill(1.0);
        }
        let now = Pair { shares, prices };
        let mut found = Self {
            program,
            piece_weight: vec![0.0; now.shares.len()],
            row_weight: vec![0.0; room.len()],
            balance: 1.0,
            sum: now.clone(),
            summed: 0,
            load: vec![0.0; room.len()],
            best: bound(program, &paid),
            best_prices: paid.clone(),
            paid,
            room,
            now,
        };
        found.weigh();
        found
    }

    /// Step lengths: one over the sum of all weights that a share or a price meets.
    fn weigh(&mut self) {
        let mut difference = vec![0.0; self.room.len() + 1];
        for piece in 0..self.piece_weight.len() {
            for charge in self.program.charges(piece) {
                let weight = charge.weight.abs();
                self.piece_weight[piece] += weight * f64::from(charge.end_row - charge.first_row);
                difference[charge.first_row as usize] += weight;
                difference[charge.end_row as usize] -= weight;
            }
        }
        let mut sum = 0.0;
        for (weight, change) in self.row_weight.iter_mut().zip(&difference) {
            sum += change;
            *weight = sum.max(1.0);
        }
        let prices = self.now.prices.iter().zip(&self.row_weight);
        let prices: f64 = prices.map(|(price, weight)| price * price * weight).sum();
        let shares: f64 = self.piece_weight.iter().sum();
        self.balance = (prices / shares.max(1.0)).sqrt();
    }

    /// Steps until the bound is good enough, or as low as the program allows.
    pub(crate) fn descend(mut self, stop: Stop) -> Dual {
        let mut steps = 0;
        let mut start = self.now.clone();
        let mut start_distance = f64::INFINITY;
        let mut last_distance = f64::INFINITY;
        self.forget();
        while steps < stop.steps && !stop.reached(self.best) {
            self.step();
            steps += 1;
            if steps % LOOK_STEPS != 0 && steps < stop.steps {
                continue;
            }
            let average = self.average();
            let distance = self.distance(&average);
            if distance <= CONVERGED {
                break;
            }
            let long = f64::from(self.summed) >= LONGEST_STRETCH * f64::from(steps);
            let slower = distance <= NEARER * start_distance && distance > last_distance;
            if distance <= MUCH_NEARER * start_distance || slower || long {
                self.rebalance(&start, &average);
                start = average.clone();
                self.now = average;
                self.forget();
                start_distance = distance;
                last_distance = f64::INFINITY;
            } else {
                last_distance = distance;
            }
        }
        Dual {
            upper: self.best,
            prices: self.best_prices,
            steps,
        }
    }

    fn forget(&mut self) {
        self.sum.shares.fill(0.0);
        self.sum.prices.fill(0.0);
        self.summed = 0;
    }

    fn average(&self) -> Pair {
        let share = 1.0 / f64::from(self.summed.max(1));
        let mean = |sums: &[f64]| sums.iter().map(|sum| sum * share).collect();
        Pair {
            shares: mean(&self.sum.shares),
            prices: mean(&self.sum.prices),
        }
    }

    /// How far the bound at a pair's prices is above what its shares are worth once they fit, as a share of the bound.
    fn distance(&mut self, pair: &Pair) -> f64 {
        let prices = Prices::of_rows(&pair.prices, self.program.rows_per_kind());
        let upper = bound(self.program, &prices);
        if upper < self.best {
            self.best = upper;
            self.best_prices = prices;
        }
        self.load.fill(0.0);
        let mut gain = 0.0;
        for (piece, share) in pair.shares.iter().enumerate() {
            gain += share * self.program.pieces()[piece].gain;
            self.program.add_load(&mut self.load, piece, *share);
        }
        running_sum(&mut self.load);
        let fits = |(load, room): (&f64, &f64)| if load > room { room / load } else { 1.0 };
        let scale = self
            .load
            .iter()
            .zip(&self.room)
            .map(fits)
            .fold(1.0, f64::min);
        (upper - scale * gain) / upper.max(f64::MIN_POSITIVE)
    }

    /// One step: shares first, then prices against where the shares are going.
    fn step(&mut self) {
        let program = self.program;
        self.paid.sum(&self.now.prices);
        self.load.fill(0.0);
        let mut chain = Chain::default();
        let length = STEP_SHARE / self.balance;
        for request in 0..program.requests() {
            chain.clear();
            for piece in program.of(request) {
                let surplus = program.pieces()[piece].gain - self.paid.rent(program.charges(piece));
                let weight = self.piece_weight[piece].max(1.0);
                chain.push(self.now.shares[piece] + length * surplus / weight, weight);
            }
            for (piece, share) in program.of(request).zip(chain.values()) {
                let before = std::mem::replace(&mut self.now.shares[piece], share);
                self.sum.shares[piece] += share;
                program.add_load(&mut self.load, piece, 2.0 * share - before);
            }
        }
        running_sum(&mut self.load);
        let length = STEP_SHARE * self.balance;
        for (row, price) in self.now.prices.iter_mut().enumerate() {
            let overfull = self.load[row] - self.room[row];
            *price = (*price + length * overfull / self.row_weight[row]).max(0.0);
            self.sum.prices[row] += *price;
        }
        self.summed += 1;
    }

    /// Makes steps in prices as long as those in shares turned out to be.
    fn rebalance(&mut self, from: &Pair, to: &Pair) {
        let moved = |from: &[f64], to: &[f64], weights: &[f64]| -> f64 {
            let each = from.iter().zip(to).zip(weights);
            let squares = each.map(|((from, to), weight)| (to - from).powi(2) * weight);
            squares.sum::<f64>().sqrt()
        };
        let shares = moved(&from.shares, &to.shares, &self.piece_weight);
        let prices = moved(&from.prices, &to.prices, &self.row_weight);
        if shares > 0.0 && prices > 0.0 {
            self.balance = (self.balance * prices / shares).sqrt();
        }
    }
}

/// The nearest shares that do not rise along a chain, and lie between 0 and 1: neighbours that rise are pooled.
#[derive(Default)]
struct Chain {
    /// Pools: value, weight, members.
    pools: Vec<(f64, f64, usize)>,
}

impl Chain {
    fn clear(&mut self) {
        self.pools.clear();
    }

    fn push(&mut self, value: f64, weight: f64) {
        let mut pool = (value, weight, 1);
        while let Some(above) = self.pools.pop_if(|above| above.0 < pool.0) {
            let weight = above.1 + pool.1;
            let value = (above.0 * above.1 + pool.0 * pool.1) / weight;
            pool = (value, weight, above.2 + pool.2);
        }
        self.pools.push(pool);
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        let pools = self.pools.iter();
        pools.flat_map(|(value, _, members)| std::iter::repeat_n(value.clamp(0.0, 1.0), *members))
    }
}
