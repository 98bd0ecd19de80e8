//! From a request's arrival to its end: a rough engine, so that steps depend on each other in time.

use params::Domain;

use crate::draw::micros;
use crate::parameters::parameters;

parameters! {
    /// What a request takes.
    #[derive(Copy)]
    Service {
        request_seconds: f64, Domain::Number(0.0, 1e6), "0.3",
            "From a request's arrival to its first output token, in seconds";
        token_seconds: f64, Domain::Number(0.0, 1e3), "0.015",
            "Then for every output token, in seconds";
    }
}

impl Service {
    pub(crate) fn micros(self, output_tokens: u32) -> i64 {
        micros(self.request_seconds + self.token_seconds * f64::from(output_tokens))
    }
}
