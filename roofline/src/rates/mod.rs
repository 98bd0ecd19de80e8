//! Fitted forms: how long one kind of kernel takes on a GPU, by a few efficiencies.
//!
//! Each form has two to seven parameters. All are sums, products, minima and maxima of functions that do not fall as a
//! shape grows, so time does not fall either: that keeps saved time from being negative.

pub(crate) mod decode;
pub(crate) mod engine;
pub(crate) mod gemm;
pub(crate) mod prefill;
pub(crate) mod transfer;
