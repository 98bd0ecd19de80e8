//! What the binaries share: flags, exit codes, progress, output that is whole or not there.

pub mod args;
pub mod exit;
pub mod output;
pub mod policies;
pub mod progress;
