//! How much memory one load, import or generation may take, so that a small file cannot exhaust the machine.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the caller of the process asked for.
static ASKED_BYTES: OnceLock<u64> = OnceLock::new();

/// Whether that was asked for, not found out.
static ASKED: AtomicBool = AtomicBool::new(false);

/// What any input may take, and how much more per byte of it. Agent sessions pack into a tenth of a byte per value.
const LEAST_BYTES: u64 = 256 << 20;
const HIGHEST_RATIO: u64 = 1 << 13;

/// Where nothing is known about the machine.
const UNKNOWN_MACHINE_BYTES: u64 = 8 << 30;

/// A number of bytes, counted down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    limit_bytes: u64,
    held_bytes: u64,
}

/// More is asked for than the budget has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {:.1} GB of memory needed, the limit for an input of this size; make the input smaller, or allow more \
     with --memory", *.limit_bytes as f64 / 1e9
)]
pub struct OverBudget {
    /// The whole budget.
    pub limit_bytes: u64,
}

impl Default for MemoryBudget {
    /// What the process was given, else half of what the machine has.
    fn default() -> Self {
        Self::new(*ASKED_BYTES.get_or_init(|| machine_bytes() / 2))
    }
}

impl MemoryBudget {
    /// The budget of an input of a known size: the default, but for small inputs far less, as no honest one unpacks to
    /// thousands of times its size. What the process was given goes unreduced.
    pub fn of_input(input_bytes: u64) -> Self {
        let default = Self::default();
        match ASKED.load(Ordering::Relaxed) {
            true => default,
            false => Self::new(
                default
                    .limit_bytes
                    .min(LEAST_BYTES.saturating_add(input_bytes.saturating_mul(HIGHEST_RATIO))),
            ),
        }
    }

    /// A budget of so many bytes.
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: 0,
        }
    }

    /// Sets the default of this process. Only the first call has an effect, and only before a budget was made.
    pub fn set_default(limit_bytes: u64) {
        let asked = ASKED_BYTES.set(limit_bytes).is_ok();
        ASKED.store(asked, Ordering::Relaxed);
    }

    /// The whole budget.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Takes a number of bytes.
    ///
    /// # Errors
    /// [`OverBudget`] where they are more than is left.
    pub fn hold(&mut self, bytes: u64) -> Result<(), OverBudget> {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        match self.held_bytes <= self.limit_bytes {
            true => Ok(()),
            false => Err(OverBudget {
                limit_bytes: self.limit_bytes,
            }),
        }
    }

    /// Gives bytes back.
    pub fn release(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }
}

/// The least of what the machine has, the control group allows and the process may address. What happens to be free does
/// not count: the same command must not fail on a busy day.
fn machine_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let total = after(&read("/proc/meminfo"), "MemTotal:").map(|kib| kib.saturating_mul(1024));
    let group = read("/sys/fs/cgroup/memory.max").trim().parse().ok();
    let address_space = after(&read("/proc/self/limits"), "Max address space");
    let known = [total, group, address_space].into_iter().flatten().min();
    known.unwrap_or(UNKNOWN_MACHINE_BYTES)
}

/// The number after a name in a table.
fn after(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_given_back() {
        let mut budget = MemoryBudget::new(10);
        assert_eq!(budget.hold(8), Ok(()));
        assert!(budget.hold(3).is_err());
        budget.release(3);
        assert_eq!(budget.hold(2), Ok(()));
        assert!(budget.hold(u64::MAX).is_err());
    }

    #[test]
    fn tables_of_the_system_are_read() {
        let limits = "Limit  Soft Limit\nMax address space         4096000000   unlimited  bytes\n";
        assert_eq!(after(limits, "Max address space"), Some(4_096_000_000));
        let free = "Max address space         unlimited            unlimited            bytes";
        assert_eq!(after(free, "Max address space"), None);
        assert!(machine_bytes() > 1 << 20);
    }
}
