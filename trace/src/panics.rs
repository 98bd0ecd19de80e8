//! Panics that end one piece of work, with a reason and without a trace on standard error.
//!
//! Two kinds of code are run so: a decoder that panics on some damaged files, and a policy that somebody submitted.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is expected, and becomes a reason.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; a panic in it becomes its message.
///
/// # Errors
/// The message of the panic. What `work` was changing is in no good state after a panic, and is to be thrown away.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install_hook();
    let before = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    result.map_err(|payload| message(payload.as_ref()))
}

/// From now on panics of guarded threads print nothing; all others print as they did.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                others(info);
            }
        }));
    });
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch_panic(|| 3), Ok(3));
        let failed = catch_panic(|| {
            let empty: [u8; 0] = [];
            empty[std::hint::black_box(2)]
        });
        assert!(failed.unwrap_err().contains("index out of bounds"));
    }
}
