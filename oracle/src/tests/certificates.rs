//! Certificates: proofs hold without the search, and tampered ones are rejected.

use proptest::prelude::*;

use crate::bracket::OracleOptions;
use crate::certificate::{Certificate, CertificateError, verify};
use crate::exact::optimum;

use super::support::{ask, asks, costs, prepared, saved, workload};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_certificate_proves_what_it_claims_and_no_more(
        asks in asks(9),
        capacity in 0_u32..6,
        warmup in 0_u32..3,
        steps in 0_u32..200,
    ) {
        let workload = workload(&asks);
        let options = OracleOptions { steps, ..OracleOptions::default() };
        for cost in costs() {
            let measured = |time: u32| if time < warmup { 0.0 } else { 1.0 };
            let saved = |time, hit| measured(time) * saved(&workload, cost.as_ref(), time, hit);
            let exact = optimum(&workload, capacity, saved).unwrap();
            let oracle = prepared(&workload, cost.as_ref(), warmup);
            let certificate = oracle.certificate(u64::from(capacity), &options).unwrap();
            let proven = verify(&workload, cost.as_ref(), &certificate).unwrap();
            prop_assert!(proven >= exact * (1.0 - 1e-9), "{} {proven} {exact}", cost.name);
            // Below the optimum nothing can be proven, whatever the prices.
            let bold = Certificate { seconds_upper: exact * 0.999, ..certificate };
            if exact > 0.0 {
                prop_assert!(verify(&workload, cost.as_ref(), &bold).is_err(), "{}", cost.name);
            }
        }
    }

    /// Any prices prove a bound: whoever writes them, nothing below the optimum is ever accepted.
    #[test]
    fn tampered_prices_prove_nothing_false(
        asks in asks(9),
        capacity in 1_u32..6,
        factors in prop::collection::vec(0.0_f64..3.0, 9),
    ) {
        let workload = workload(&asks);
        for cost in costs() {
            let saved = |time, hit| saved(&workload, cost.as_ref(), time, hit);
            let exact = optimum(&workload, capacity, saved).unwrap();
            let oracle = prepared(&workload, cost.as_ref(), 0);
            let mut certificate = oracle.certificate(u64::from(capacity), &OracleOptions::default()).unwrap();
            let mut sum = 0.0;
            for (paid, factor) in certificate.slots_paid.iter_mut().zip(&factors) {
                sum += factor * exact / 9.0;
                *paid = sum;
            }
            match verify(&workload, cost.as_ref(), &certificate) {
                Ok(proven) => prop_assert!(proven >= exact * (1.0 - 1e-9)),
                Err(CertificateError::Higher { proven, .. }) => prop_assert!(proven >= exact * (1.0 - 1e-9)),
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}

/// Two prompts that do not fit together, each asked for twice.
#[test]
fn tampering_is_found() {
    let (a, b) = ([1, 2], [3, 4]);
    let workload = workload(&[ask(&a), ask(&b), ask(&a), ask(&b)]);
    let cost = &costs()[2];
    let oracle = prepared(&workload, cost.as_ref(), 0);
    let certificate = oracle.certificate(3, &OracleOptions::default()).unwrap();
    let check = |certificate: &Certificate| verify(&workload, cost.as_ref(), certificate);
    let proven = check(&certificate).unwrap();
    assert!((proven - certificate.seconds_upper).abs() <= 1e-6 * proven);

    let mut lower_claim = certificate.clone();
    lower_claim.seconds_upper *= 0.999;
    assert!(matches!(
        check(&lower_claim),
        Err(CertificateError::Higher { .. })
    ));

    let mut smaller_price = certificate.clone();
    smaller_price.hit_block_price *= 0.5;
    smaller_price.slots_paid.fill(0.0);
    smaller_price.shares.clear();
    assert!(matches!(
        check(&smaller_price),
        Err(CertificateError::Higher { .. })
    ));

    let mut larger_cache = certificate.clone();
    larger_cache.capacity_blocks += 1;
    assert!(matches!(
        check(&larger_cache),
        Err(CertificateError::Higher { .. })
    ));

    let mut falling = certificate.clone();
    falling.slots_paid[0] = 1.0;
    falling.slots_paid[1] = 0.0;
    assert_eq!(check(&falling), Err(CertificateError::NoPrice));

    let mut shorter = certificate;
    shorter.slots_paid.pop();
    assert!(matches!(
        check(&shorter),
        Err(CertificateError::OtherTrace { .. })
    ));
}
