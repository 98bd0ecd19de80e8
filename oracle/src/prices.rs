//! Prices of room, row by row of the linear program.
//!
//! Prices are kept as running sums, which makes the rent of a range of rows one difference. They are taken as they are: the
//! price of a row *is* the difference of two neighbouring sums, so that no rounding of a sum can make a rent too high.

use crate::intervals::{NEVER, Time};

/// Room that a piece takes in each row of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Charge {
    pub(crate) first_row: u32,
    pub(crate) end_row: u32,
    pub(crate) weight: f64,
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
    pub(crate) fn of_all_room(&self, room: &[f64]) -> f64 {
        let kinds = self.paid.chunks(self.rows_per_kind.max(1));
        let of_kind = |(paid, room): (&[f64], &f64)| paid.last().map_or(0.0, |sum| sum * room);
        kinds.zip(room).map(of_kind).sum()
    }
}
