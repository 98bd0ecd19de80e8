//! From a request's arrival to its end: a rough engine, so that steps depend on each other in time.

use crate::draw::micros;
use crate::error::GenError;
use crate::params::{Param, Values, param};

pub(crate) const PARAMS: &[Param] = &[
    param(
        "request-seconds",
        "0.3",
        "From a request's arrival to its first output token, in seconds",
    ),
    param(
        "token-seconds",
        "0.015",
        "Then for every output token, in seconds",
    ),
];

/// What a request takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    request_seconds: f64,
    token_seconds: f64,
}

impl Service {
    pub(crate) fn read(values: &Values) -> Result<Self, GenError> {
        Ok(Self {
            request_seconds: values.number("request-seconds", 0.0..=1e6)?,
            token_seconds: values.number("token-seconds", 0.0..=1e3)?,
        })
    }

    pub(crate) fn micros(self, output_tokens: u32) -> i64 {
        micros(self.request_seconds + self.token_seconds * f64::from(output_tokens))
    }
}
