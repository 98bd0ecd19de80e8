//! How far long work has come, told to whoever wants to show it.

/// Hears of stages and of what is done of them, from any thread.
pub trait Progress: Sync {
    /// A stage of `length` steps begins; the one before it is over.
    fn stage(&self, what: &'static str, length: u64);

    /// More steps of the stage are done.
    fn advance(&self, steps: u64);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _: &'static str, _: u64) {}

    fn advance(&self, _: u64) {}
}
