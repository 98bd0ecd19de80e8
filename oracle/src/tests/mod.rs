//! The oracle against answers found in other ways.

mod certificates;
mod golden;
mod lp;
mod named;
mod real;
mod small;
mod states;
mod support;
