//! The commands as their users run them, and the floor plan.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod architecture;
mod checkpoints;
mod oracle;
mod pages;
mod replay;
mod roofline;
mod support;
mod trace_gen;
