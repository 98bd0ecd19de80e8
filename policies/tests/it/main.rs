//! What every registered policy must do: the conformance suite.

mod clocks;
mod invariants;
mod registered;
mod scenarios;
mod support;
mod trap;
mod under_test;
