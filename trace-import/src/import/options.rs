//! Options that several formats have, and what is wrong with one.

use params::{Domain, Param};

use crate::error::ImportError;

/// The option for the size of blocks, with the default of a format.
pub(crate) const fn block_tokens(default: &'static str) -> Param {
    Param {
        name: BLOCK_TOKENS,
        default,
        domain: Domain::Count(1, u32::MAX as u64),
        help: "Tokens per block.",
    }
}

pub(crate) const BLOCK_TOKENS: &str = "block-tokens";

/// An option that has a value which its domain lets through but the input or the machine does not.
pub(crate) fn option_fault(option: &Param, found: &str) -> ImportError {
    ImportError::Parameter {
        name: option.name,
        found: match found {
            "" => "missing".to_owned(),
            found => format!("`{found}`"),
        },
        expected: option.domain.to_string(),
    }
}
