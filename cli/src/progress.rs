//! Progress on a terminal, silence elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

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
