//! The oracle against answers found in other ways.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../replay/tests/it/support.rs"]
mod golden_files;

mod golden;
mod lp;
mod named;
mod real;
mod small;
mod states;
mod support;
