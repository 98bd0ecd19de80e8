//! The cache as its users see it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod checkpoints;
mod faults;
mod known_faults;
mod leases;
mod model;
mod support;
