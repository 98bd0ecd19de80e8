//! What can be wrong with an experiment.

use std::path::PathBuf;

use oracle::CertificateError;
use roofline::RooflineError;
use trace::TraceError;

/// Why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A model, GPU or cost model is not there or not well formed.
    #[error(transparent)]
    Pricing(#[from] RooflineError),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Nothing of such a model depends on the capacity.
    #[error(
        "{model} keeps no KV per token, so that a block would weigh nothing: such models cannot be replayed"
    )]
    NoKv {
        /// The model.
        model: String,
    },
    /// A question that makes sense only where a prompt can resume at any token.
    #[error(
        "{what} is for models whose KV is per token, and {model} resumes only from saved states: use another --model"
    )]
    NeedsKvPerToken {
        /// What was asked for.
        what: &'static str,
        /// The model.
        model: String,
    },
    /// Where a prompt resumes only from saved states, a leaf is evicted whole or a state alone.
    #[error(
        "{model} resumes only from saved states, where leaves are evicted whole and states alone: leave --evict-unit out"
    )]
    EvictUnit {
        /// The model.
        model: String,
    },
    /// The warm-up is the whole trace.
    #[error("--warmup leaves none of the {requests} requests of {} to measure", trace.display())]
    NothingMeasured {
        /// The trace.
        trace: PathBuf,
        /// Its requests.
        requests: usize,
    },
    /// A certificate is about something else.
    #[error(
        "a certificate is about {trace} under {cost} of {model} on {gpu}: give the same traces in the same order, and name that model, GPU and cost model"
    )]
    NotCertified {
        /// The trace.
        trace: String,
        /// The cost model.
        cost: String,
        /// The model.
        model: String,
        /// The GPU.
        gpu: String,
    },
    /// A certificate proves nothing, or less than it claims.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A list is empty.
    #[error("nothing to run: name at least one {0}")]
    Empty(&'static str),
}
