//! The cache as its users see it.

mod faults;
mod known_faults;
mod model;
mod support;
