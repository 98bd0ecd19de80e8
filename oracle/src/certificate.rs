//! The proof of an upper bound, for whoever does not trust the search: prices, from which the bound can be computed anew.
//!
//! [`verify`] shares no code with the search. It walks the paths of the trace block by block, and rounds every operation
//! outward, so that what it returns is a bound in exact arithmetic.

use policy_api::PrefillCost;
use serde::{Deserialize, Serialize};
use trace::Workload;

use crate::flat::flat_belady_blocks;
use crate::intervals::Intervals;

/// An upper bound on the seconds that any policy saves at one capacity, and the prices that prove it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Capacity in blocks.
    pub capacity_blocks: u64,
    /// Leading requests that filled the cache and were not measured.
    pub warmup_requests: u32,
    /// No policy saves more seconds.
    pub seconds_upper: f64,
    /// Price of every hit block, of which there are at most as many as flat Belady hits.
    pub hit_block_price: f64,
    /// By request, the price of one slot in all gaps before it.
    pub slots_paid: Vec<f64>,
    /// Prices of shares.
    pub shares: Vec<SharePrices>,
}

/// Prices of the shares of one division of the capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharePrices {
    /// Holding `x` blocks of a capacity `C` over a gap takes `⌈kx/C⌉ − 1` shares, of which there are `k − 1`. This is `k`.
    pub divisor: u32,
    /// By request, the price of one share in all gaps before it.
    pub paid: Vec<f64>,
}

/// Why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum CertificateError {
    /// It is not about a trace of so many requests.
    OtherTrace {
        /// Requests of the trace.
        requests: usize,
        /// Entries of a list of prices.
        prices: usize,
    },
    /// A price is negative or no number, or a divisor is below 2.
    NoPrice,
    /// Its prices prove less than it claims.
    Higher {
        /// The bound that it claims.
        claimed: f64,
        /// The bound that its prices prove.
        proven: f64,
    },
}

impl std::fmt::Display for CertificateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherTrace { requests, prices } => write!(
                f,
                "the certificate has prices for {prices} requests, and the trace has {requests}: they do not belong together"
            ),
            Self::NoPrice => write!(
                f,
                "the certificate has a price that is negative or no number, or a divisor below 2"
            ),
            Self::Higher { claimed, proven } => write!(
                f,
                "the certificate claims that no policy saves more than {claimed} s, but its prices prove {proven} s only"
            ),
        }
    }
}

impl std::error::Error for CertificateError {}

/// What a claim may be below what is proven, as a share: the outward rounding of the check, which the search does
/// not have. Rounding 0 outward gives more than 0, but less than the smallest normal number.
const ROUNDING: f64 = 1e-9;

/// The bound that a certificate's prices prove, in seconds.
///
/// # Errors
/// If the certificate does not belong to the trace, or claims a lower bound than its prices prove.
pub fn verify(
    workload: &Workload,
    cost: &dyn PrefillCost,
    certificate: &Certificate,
) -> Result<f64, CertificateError> {
    check_prices(workload, certificate)?;
    let mut last_touch = vec![None; workload.distinct_blocks() as usize];
    let mut proven = price_of_all_room(workload, certificate);
    for (time, request) in workload.requests().iter().enumerate() {
        let path = workload.path(request);
        if time >= certificate.warmup_requests as usize {
            let usable = path.len().min(workload.usable_blocks(request) as usize);
            let hit = Hit {
                certificate,
                time,
                touched: path[..usable]
                    .iter()
                    .map_while(|block| last_touch[block.index()])
                    .collect(),
            };
            let prompt = u64::from(request.prompt_tokens);
            let block_tokens = u64::from(workload.block_tokens());
            let cold = cost.prefill(prompt, 0).seconds;
            let saved = |blocks: usize| {
                (cold - cost.prefill(prompt, blocks as u64 * block_tokens).seconds).next_up()
            };
            proven = (proven + hit.largest_surplus(saved)).next_up();
        }
        for block in path {
            last_touch[block.index()] = Some(time);
        }
    }
    let claimed = certificate.seconds_upper;
    if proven <= claimed * (1.0 + ROUNDING) + f64::MIN_POSITIVE {
        Ok(proven)
    } else {
        Err(CertificateError::Higher { claimed, proven })
    }
}

fn check_prices(workload: &Workload, certificate: &Certificate) -> Result<(), CertificateError> {
    let requests = workload.requests().len();
    let shares = certificate.shares.iter().map(|shares| &shares.paid);
    for paid in std::iter::once(&certificate.slots_paid).chain(shares) {
        if paid.len() != requests {
            return Err(CertificateError::OtherTrace {
                requests,
                prices: paid.len(),
            });
        }
        let rises = paid.windows(2).all(|two| two[0] <= two[1]);
        if !rises || !paid.iter().all(|sum| sum.is_finite()) {
            return Err(CertificateError::NoPrice);
        }
    }
    let is_price = certificate.hit_block_price.is_finite() && certificate.hit_block_price >= 0.0;
    let divides = certificate.shares.iter().all(|shares| shares.divisor >= 2);
    if is_price && divides {
        Ok(())
    } else {
        Err(CertificateError::NoPrice)
    }
}

/// What all requests together can pay at most.
fn price_of_all_room(workload: &Workload, certificate: &Certificate) -> f64 {
    let whole = |paid: &[f64]| match paid {
        [first, .., last] => (last - first).next_up(),
        _ => 0.0,
    };
    let capacity = certificate.capacity_blocks as f64;
    let mut sum = (capacity * whole(&certificate.slots_paid)).next_up();
    for shares in &certificate.shares {
        let room = f64::from(shares.divisor - 1);
        sum = (sum + (room * whole(&shares.paid)).next_up()).next_up();
    }
    if certificate.hit_block_price > 0.0 {
        let intervals = Intervals::new(workload, certificate.warmup_requests);
        let most = flat_belady_blocks(&intervals, certificate.capacity_blocks) as f64;
        sum = (sum + (most * certificate.hit_block_price).next_up()).next_up();
    }
    sum
}

/// What one request can hit.
struct Hit<'a> {
    certificate: &'a Certificate,
    time: usize,
    /// By block, the request that touched it last.
    touched: Vec<usize>,
}

impl Hit<'_> {
    /// The largest saving less rent over all depths that fit, rounded up.
    fn largest_surplus(&self, saved: impl Fn(usize) -> f64) -> f64 {
        let slots = &self.certificate.slots_paid;
        let fit = usize::try_from(self.certificate.capacity_blocks).unwrap_or(usize::MAX);
        let mut largest = 0.0_f64;
        // Rounded down: a rent too low makes the bound higher.
        let mut rent = 0.0_f64;
        // Where the last touch changes along the path.
        let mut tops: Vec<usize> = Vec::new();
        for depth in 1..=self.touched.len().min(fit) {
            let touched = self.touched[depth - 1];
            if depth == 1 || touched != self.touched[depth - 2] {
                tops.push(depth - 1);
            }
            let of_block = (slots[self.time] - slots[touched]).next_down();
            let of_block = (of_block + self.certificate.hit_block_price).next_down();
            rent = (rent + of_block).next_down();
            let all_rent = (rent + self.rent_of_shares(depth, &tops)).next_down();
            largest = largest.max((saved(depth) - all_rent).next_up());
        }
        largest
    }

    /// What the shares of a hit cost, rounded down: over the gaps between the last touches of two neighbouring stretches, the
    /// request holds what lies below the upper one.
    fn rent_of_shares(&self, depth: usize, tops: &[usize]) -> f64 {
        let mut rent = 0.0_f64;
        for shares in &self.certificate.shares {
            let mut until = self.time;
            for top in tops {
                let from = self.touched[*top];
                let taken = (u64::from(shares.divisor) * (depth - top) as u64)
                    .div_ceil(self.certificate.capacity_blocks)
                    - 1;
                let price = (shares.paid[until] - shares.paid[from]).next_down();
                rent = (rent + (taken as f64 * price.max(0.0)).next_down()).next_down();
                until = from;
            }
        }
        rent
    }
}
