//! The cache as its users see it.

mod checkpoints;
mod faults;
mod known_faults;
mod model;
mod support;
