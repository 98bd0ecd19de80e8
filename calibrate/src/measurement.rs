//! One measured time, whatever file it is from.

use roofline::Kernel;

/// One measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Name of the GPU preset it was measured on.
    pub gpu: String,
    /// The kind of file it is from.
    pub source: &'static str,
    /// The model whose shape it is, or empty.
    pub model: String,
    /// What ran.
    pub work: TimedWork,
    /// The operator's name there, where several of one shape are told apart by it; else empty.
    pub label: String,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimedWork {
    /// One kernel.
    Kernel(Kernel),
    /// A whole prefill of `batch` prompts of `prompt_tokens` on `gpus` GPUs.
    Prefill {
        /// Tensor-parallel GPUs.
        gpus: u32,
        /// Prompts.
        batch: u32,
        /// Tokens of each.
        prompt_tokens: u32,
    },
}

/// The operator of [`TimedWork::Prefill`].
pub(crate) const WHOLE_PREFILL: &str = "whole-prefill";

impl TimedWork {
    /// Name of what was timed, as in tables.
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Kernel(kernel) => kernel.operator(),
            Self::Prefill { .. } => WHOLE_PREFILL,
        }
    }
}
