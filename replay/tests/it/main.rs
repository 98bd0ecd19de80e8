//! Replay on cases with known answers.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod factories;
mod golden;
mod mooncake;
