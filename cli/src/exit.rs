//! From results to exit codes.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// What a shell reports of a process that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// From now on an interrupt (Ctrl-C) removes half-written files before it ends the process.
pub fn clean_up_on_interrupt() {
    let clean_up = || {
        trace::remove_unfinished();
        std::process::exit(INTERRUPTED);
    };
    // Where no handler can be set, an interrupt ends the process as it always did.
    let _ = ctrlc::set_handler(clean_up);
}

/// 0 for success; 1 for an error, which is printed with its causes. Bad usage leaves through clap with 2.
///
/// A reader of standard output that went away (`| head`) is no error.
pub fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken_pipe) {
        return ExitCode::SUCCESS;
    }
    // Nothing sensible is left to do if standard error is gone too.
    let text = printable(&format!("error: {error:#}"));
    let _ = writeln!(std::io::stderr(), "{text}");
    ExitCode::FAILURE
}

/// Text with its control characters spelled out: what comes from inside files and names must not steer the terminal.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            c if c.is_control() => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn escape_sequences_are_spelled_out() {
        let text = printable("a\u{1b}[31mb\u{9b}c\r\n\té");
        assert_eq!(text, "a\\u{1b}[31mb\\u{9b}c\\u{d}\n\té");
    }
}
