//! Replay on small cases with known answers.

mod golden;
mod support;
