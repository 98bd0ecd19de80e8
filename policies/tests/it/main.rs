//! What every registered policy must do: the conformance suite.

mod clocks;
mod invariants;
mod registered;
mod scenarios;
mod trap;
mod under_test;
