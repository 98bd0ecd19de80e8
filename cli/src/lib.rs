//! What the binaries share: flags, exit codes, progress, output that is whole or not there.

pub mod capacity;
pub mod exit;
pub mod input;
pub mod lists;
pub mod output;
pub mod progress;
pub mod warmup;
