//! Least squares on the logarithm of time.
//!
//! Residuals are `ln(predicted / measured)`, so a kernel of 10 us counts as much as one of 10 ms. They enter through
//! the soft L1 loss `2 (sqrt(1 + (r/s)^2) - 1)` with s = 0.05, so that a kernel for which the library chose badly does
//! not pull the rest. The parameters' logarithms are moved by Levenberg and Marquardt's method within their bounds,
//! with a weak pull towards the start, which decides what the measurements do not.

use roofline::Gpu;

use crate::fitted::{Bounds, Fitted};

const LOSS_SCALE: f64 = 0.05;
/// Weight of a parameter's distance from its start against one row's residual, per row.
const PULL: f64 = 1e-5;
const ITERATIONS: usize = 60;
/// Improvement of the loss below which the search stops.
const TOLERANCE: f64 = 1e-7;

/// Fits the parameters of `start` to (shape, seconds) rows; returns it unchanged if there are none.
pub(crate) fn fit<R: Fitted>(start: &R, gpu: &Gpu, rows: &[(R::Shape, f64)]) -> R {
    let mut fits = start.candidates().into_iter().map(|start| {
        let rates = fit_from(&start, gpu, rows);
        (mean_loss(&rates, gpu, rows), rates)
    });
    let first = fits.next();
    let best = first.map(|first| {
        fits.fold(
            first,
            |best, next| if next.0 < best.0 { next } else { best },
        )
    });
    best.map_or_else(|| start.clone(), |(_, rates)| rates)
}

fn fit_from<R: Fitted>(start: &R, gpu: &Gpu, rows: &[(R::Shape, f64)]) -> R {
    let problem = Problem { start, gpu, rows };
    let mut point = problem.start_point();
    let mut loss = problem.loss(&point);
    let mut damping = 1e-3;
    for _ in 0..ITERATIONS {
        let (gradient, curvature) = problem.normal_equations(&point);
        let mut improved = 0.0;
        while damping < 1e9 {
            let step = solve(&curvature, &gradient, damping);
            let next = problem.bounded(&point, &step);
            let next_loss = problem.loss(&next);
            if next_loss < loss {
                improved = (loss - next_loss) / loss;
                (point, loss) = (next, next_loss);
                damping *= 0.3;
                break;
            }
            damping *= 4.0;
        }
        if improved < TOLERANCE {
            break;
        }
    }
    problem.rates(&point)
}

/// Mean loss of `rates` over the rows, without the pull: what two fits are compared by.
fn mean_loss<R: Fitted>(rates: &R, gpu: &Gpu, rows: &[(R::Shape, f64)]) -> f64 {
    rows.iter()
        .map(|row| soft_l1(residual(rates, gpu, row)))
        .sum::<f64>()
        / rows.len() as f64
}

fn residual<R: Fitted>(rates: &R, gpu: &Gpu, (shape, seconds): &(R::Shape, f64)) -> f64 {
    (rates.seconds(gpu, shape) / seconds).ln()
}

fn soft_l1(residual: f64) -> f64 {
    let scaled = residual / LOSS_SCALE;
    2.0 * LOSS_SCALE * LOSS_SCALE * ((1.0 + scaled * scaled).sqrt() - 1.0)
}

/// Iteratively reweighted least squares: the weight that makes a squared residual's slope that of the loss.
fn weight(residual: f64) -> f64 {
    let scaled = residual / LOSS_SCALE;
    1.0 / (1.0 + scaled * scaled).sqrt()
}

struct Problem<'a, R: Fitted> {
    start: &'a R,
    gpu: &'a Gpu,
    rows: &'a [(R::Shape, f64)],
}

impl<R: Fitted> Problem<'_, R> {
    fn start_point(&self) -> Vec<f64> {
        let values = self.start.values().into_iter().zip(R::BOUNDS);
        values
            .map(|(value, bounds)| value.clamp(bounds.low, bounds.high).ln())
            .collect()
    }

    fn rates(&self, point: &[f64]) -> R {
        let mut rates = self.start.clone();
        rates.set(&point.iter().map(|p| p.exp()).collect::<Vec<_>>());
        rates
    }

    fn residuals(&self, point: &[f64]) -> Vec<f64> {
        let rates = self.rates(point);
        self.rows
            .iter()
            .map(|row| residual(&rates, self.gpu, row))
            .collect()
    }

    fn loss(&self, point: &[f64]) -> f64 {
        let pull: f64 = point
            .iter()
            .zip(self.start_point())
            .map(|(p, start)| (p - start).powi(2))
            .sum();
        let rows: f64 = self.residuals(point).into_iter().map(soft_l1).sum();
        rows + PULL * self.rows.len() as f64 * pull
    }

    fn bounded(&self, point: &[f64], step: &[f64]) -> Vec<f64> {
        // A step of more than a factor e^2 leaves the region in which the slopes mean anything.
        let moved = point.iter().zip(step).map(|(p, s)| p + s.clamp(-2.0, 2.0));
        moved
            .zip(R::BOUNDS)
            .map(|(p, bounds)| p.clamp(bounds.low.ln(), bounds.high.ln()))
            .collect()
    }

    /// Downhill gradient and weighted normal matrix.
    fn normal_equations(&self, point: &[f64]) -> (Vec<f64>, Vec<Vec<f64>>) {
        const STEP: f64 = 1e-4;
        let residuals = self.residuals(point);
        let slopes: Vec<Vec<f64>> = (0..point.len())
            .map(|parameter| {
                // Towards the inside of the bounds, so that the slope is one the search can follow.
                let Bounds { low, high, .. } = R::BOUNDS[parameter];
                let middle = f64::midpoint(low.ln(), high.ln());
                let step = if point[parameter] > middle {
                    -STEP
                } else {
                    STEP
                };
                let mut moved = point.to_vec();
                moved[parameter] += step;
                let there = self.residuals(&moved);
                there
                    .iter()
                    .zip(&residuals)
                    .map(|(a, b)| (a - b) / step)
                    .collect()
            })
            .collect();
        let weights: Vec<f64> = residuals.iter().map(|r| weight(*r)).collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 {
            a.iter()
                .zip(b)
                .zip(&weights)
                .map(|((a, b), w)| a * b * w)
                .sum()
        };
        let pull = PULL * self.rows.len() as f64;
        let start = self.start_point();
        let gradient = (0..point.len())
            .map(|i| -dot(&slopes[i], &residuals) - pull * (point[i] - start[i]))
            .collect();
        let curvature = (0..point.len())
            .map(|i| {
                let diagonal = |j: usize| if i == j { pull } else { 0.0 };
                (0..point.len())
                    .map(|j| dot(&slopes[i], &slopes[j]) + diagonal(j))
                    .collect()
            })
            .collect();
        (gradient, curvature)
    }
}

/// Solves `(A + damping diag(A)) x = b` by elimination with pivots; a singular direction gets no step.
fn solve(matrix: &[Vec<f64>], rhs: &[f64], damping: f64) -> Vec<f64> {
    let n = rhs.len();
    let mut a: Vec<Vec<f64>> = matrix.to_vec();
    let mut b = rhs.to_vec();
    for (i, row) in a.iter_mut().enumerate() {
        row[i] *= 1.0 + damping;
    }
    for column in 0..n {
        let largest =
            (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs()));
        let pivot = largest.unwrap_or(column);
        a.swap(column, pivot);
        b.swap(column, pivot);
        if a[column][column].abs() < f64::MIN_POSITIVE {
            continue;
        }
        let (pivot_row, pivot_rhs) = (a[column].clone(), b[column]);
        for (row, rhs) in a.iter_mut().zip(&mut b).skip(column + 1) {
            let factor = row[column] / pivot_row[column];
            for (cell, pivot) in row.iter_mut().zip(&pivot_row) {
                *cell -= factor * pivot;
            }
            *rhs -= factor * pivot_rhs;
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
        if a[i][i].abs() >= f64::MIN_POSITIVE {
            x[i] = (b[i] - known) / a[i][i];
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;
    use roofline::{Gemm, GemmRates, Stream, StreamRates};

    #[test]
    fn elimination_solves_a_small_system() {
        let x = solve(&[vec![0.0, 2.0], vec![3.0, 1.0]], &[4.0, 5.0], 0.0);
        assert!(
            (x[0] - 1.0).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12,
            "{x:?}"
        );
    }

    #[test]
    fn known_parameters_are_found_again() {
        let gpu = Gpu::named("h100").unwrap();
        let mut truth = GemmRates::start();
        truth.set(&[4.0, 0.75, 20.0, 150.0, 0.8, 5.0, 2.5]);
        let sizes = [32.0, 200.0, 1000.0, 4096.0, 9000.0];
        let mut rows = Vec::new();
        for m in [1.0, 8.0, 100.0, 300.0, 1000.0, 3000.0, 8192.0] {
            for (n, k) in sizes
                .iter()
                .flat_map(|n| sizes.iter().map(move |k| (*n, *k)))
            {
                let shape = Gemm::fp16(m, n, k);
                rows.push((shape, truth.seconds(&gpu, &shape)));
            }
        }
        let found = fit(&GemmRates::start(), &gpu, &rows);
        assert!(mean_loss(&found, &gpu, &rows) < 1e-5, "{found:?}");
        for (found, truth) in found.values().into_iter().zip(truth.values()) {
            assert!((found / truth).ln().abs() < 0.2, "{found} for {truth}");
        }
    }

    #[test]
    fn one_wild_row_does_not_move_the_rest() {
        let gpu = Gpu::named("a100").unwrap();
        let mut truth = StreamRates::start();
        truth.set(&[4.0, 0.6]);
        let mut rows: Vec<_> = (10..60)
            .map(|i| {
                let shape = Stream {
                    bytes: 1.4f64.powi(i),
                    flops: 0.0,
                };
                (shape, truth.seconds(&gpu, &shape))
            })
            .collect();
        rows[20].1 *= 50.0;
        let found = fit(&StreamRates::start(), &gpu, &rows);
        for (found, truth) in found.values().into_iter().zip(truth.values()) {
            assert!((found / truth).ln().abs() < 0.02, "{found} for {truth}");
        }
    }
}
