//! The oracle against answers found in other ways.

#[path = "../../../replay/tests/it/support.rs"]
mod golden_files;

mod golden;
mod lp;
mod named;
mod real;
mod small;
mod states;
mod support;
