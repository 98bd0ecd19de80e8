//! Shapes that several kinds of files measure.

use roofline::{
    ACTIVATION_BYTES, DecodeAttention, Kernel, Mixer, Mlp, PrefillAttention, RooflineError, Stream,
};

use crate::files::kind::CsvLine;

/// Elementwise work on that many fp16 elements, read or written.
pub(crate) fn elementwise(elements: f64) -> Kernel {
    let bytes = ACTIVATION_BYTES * elements;
    Kernel::Stream(Stream { bytes, flops: 0.0 })
}

/// The heads that a batch of sequences attends with, on one GPU.
#[derive(Clone, Copy)]
pub(crate) struct BatchHeads {
    pub(crate) batch: f64,
    pub(crate) heads: f64,
    pub(crate) kv_heads: f64,
    pub(crate) head_dim: f64,
}

impl BatchHeads {
    pub(crate) fn prefill(self, new_tokens: f64, cached_tokens: f64) -> Kernel {
        Kernel::Prefill(PrefillAttention {
            batch: self.batch,
            new_tokens,
            cached_tokens,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            window: f64::INFINITY,
            kv_bytes: 2.0,
        })
    }

    pub(crate) fn decode(self, context_tokens: f64) -> Kernel {
        let pair_width = 2.0 * self.head_dim;
        Kernel::Decode(DecodeAttention {
            batch: self.batch,
            context_tokens,
            heads: self.heads,
            kv_heads: self.kv_heads,
            pair_width,
            elements_per_token: self.kv_heads * pair_width,
            kv_bytes: 2.0,
        })
    }

    /// The heads of the model that the file's name names.
    pub(crate) fn of_file(line: &CsvLine, batch: f64) -> Result<Self, RooflineError> {
        let first = line.model_of_file()?.groups.first();
        match first.map(|group| &group.mixer) {
            Some(Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                ..
            }) => Ok(Self {
                batch,
                heads: f64::from(*heads),
                kv_heads: f64::from(*kv_heads),
                head_dim: f64::from(*head_dim),
            }),
            _ => Err(line.file_error("the model has no plain attention")),
        }
    }
}

/// Inner width of the dense feed-forward layers of the model that the file's name names.
pub(crate) fn intermediate_of_file(line: &CsvLine) -> Result<f64, RooflineError> {
    let first = line.model_of_file()?.groups.first();
    match first.map(|group| &group.mlp) {
        Some(Mlp::Dense { intermediate, .. }) => Ok(f64::from(*intermediate)),
        _ => Err(line.file_error("the model has no dense feed-forward layers")),
    }
}
