//! Progress on a terminal, silence elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use experiment::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// One bar at a time on standard error; hidden unless standard error is a terminal.
pub struct TerminalProgress {
    bar: Mutex<ProgressBar>,
}

impl Default for TerminalProgress {
    fn default() -> Self {
        Self {
            bar: Mutex::new(ProgressBar::hidden()),
        }
    }
}

impl TerminalProgress {
    fn current(&self) -> ProgressBar {
        // A bar is no worse for a thread that panicked while it advanced.
        let bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        bar.clone()
    }

    /// The last stage is over.
    pub fn finish(&self) {
        self.current().finish_and_clear();
    }
}

impl Progress for TerminalProgress {
    fn stage(&self, what: &'static str, length: u64) {
        self.finish();
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        *bar = progress_bar(length, what);
    }

    fn advance(&self, steps: u64) {
        self.current().inc(steps);
    }
}

/// A bar on standard error that counts `length` of `what`; hidden unless standard error is a terminal.
pub fn progress_bar(length: u64, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {bar:40} {human_pos}/{human_len} ({eta} left)");
    ProgressBar::new(length)
        .with_style(style.expect("a template that indicatif knows"))
        .with_message(what)
}
