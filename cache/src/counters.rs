//! What is counted: of one request in its [`Outcome`](crate::Outcome), of a whole run in its record.

use std::ops::AddAssign;

/// Something that is counted: a number, or a number where the model has such things at all.
trait Count: Copy {
    fn plus(self, more: Self) -> Self;
}

impl Count for u64 {
    fn plus(self, more: Self) -> Self {
        self + more
    }
}

impl Count for Option<u64> {
    fn plus(self, more: Self) -> Self {
        match (self, more) {
            (None, other) | (other, None) => other,
            (Some(count), Some(more)) => Some(count + more),
        }
    }
}

/// Declares the counters once; sums and serialised forms follow.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// Counts of one request, or sums over many.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Counters {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, more: Self) {
                $(self.$name = self.$name.plus(more.$name);)*
            }
        }
    };
}

counters! {
    /// Blocks that were a prefix hit.
    hit_blocks: u64,
    /// Blocks that were admitted.
    admitted_blocks: u64,
    /// Blocks of the path that were not admitted.
    rejected_blocks: u64,
    /// Blocks that were evicted, of this request or any other.
    evicted_blocks: u64,
    /// Blocks of the path that had been evicted, and were not requested since.
    reaccessed_blocks: u64,
    /// States that were saved; null where the model has none.
    saved_states: Option<u64>,
    /// States that were evicted; null likewise.
    evicted_states: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_by_counter() {
        let mut sum = Counters::default();
        let one = Counters {
            hit_blocks: 2,
            saved_states: Some(1),
            ..Counters::default()
        };
        sum += one;
        sum += one;
        assert_eq!((sum.hit_blocks, sum.saved_states), (4, Some(2)));
        assert_eq!((sum.evicted_blocks, sum.evicted_states), (0, None));
    }
}
