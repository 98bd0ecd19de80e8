//! The kernels a forward pass is made of, and the arithmetic and traffic of each.

/// Bytes of one activation: fp16 or bf16.
pub const ACTIVATION_BYTES: f64 = 2.0;

/// One kernel launch on one GPU. Counts are real numbers, because a tensor-parallel share need not be whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// A matrix product with a weight.
    Gemm(Gemm),
    /// Attention of new tokens over a cached prefix and themselves.
    Prefill(PrefillAttention),
    /// Attention of one new token per sequence over its whole context.
    Decode(DecodeAttention),
    /// Elementwise work: reads, a little arithmetic, writes.
    Stream(Stream),
    /// Sum over the GPUs of a tensor-parallel group.
    AllReduce(AllReduce),
    /// A copy between device and host memory.
    HostCopy(HostCopy),
}

/// `[rows, inner] x [inner, columns]`, `groups` of them in one launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gemm {
    /// Rows of the activation: tokens.
    pub rows: f64,
    /// Columns of the weight: outputs.
    pub columns: f64,
    /// The dimension summed over.
    pub inner: f64,
    /// Products of that shape in one launch, each with a weight of its own: experts.
    pub groups: f64,
    /// Bytes of one weight element.
    pub weight_bytes: f64,
}

/// Causal attention of `new_tokens` queries per sequence, which follow `cached_tokens` whose keys and values are there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrefillAttention {
    /// Sequences.
    pub batch: f64,
    /// Queries of each sequence.
    pub new_tokens: f64,
    /// Tokens before them.
    pub cached_tokens: f64,
    /// Query heads.
    pub heads: f64,
    /// Key and value heads.
    pub kv_heads: f64,
    /// Width of a head; with keys wider than values, their mean.
    pub head_dim: f64,
    /// Tokens that a query can look back on, itself included; infinite without a sliding window.
    pub window: f64,
    /// Bytes of one key or value element.
    pub kv_bytes: f64,
}

/// One decode step: every sequence attends with one query per head to its context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecodeAttention {
    /// Sequences.
    pub batch: f64,
    /// Tokens each of them attends to, the new one included.
    pub context_tokens: f64,
    /// Query heads.
    pub heads: f64,
    /// Key and value heads: with the sequences, the units of parallel work.
    pub kv_heads: f64,
    /// Width of a key plus width of a value, as the products see them.
    pub pair_width: f64,
    /// Elements read per token of context.
    pub elements_per_token: f64,
    /// Bytes of one of those elements.
    pub kv_bytes: f64,
}

/// Elementwise work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Read and written, bytes.
    pub bytes: f64,
    /// Arithmetic outside the tensor units, FLOPs.
    pub flops: f64,
}

/// All-reduce of `bytes` over `gpus` of one node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AllReduce {
    /// Size of the tensor, bytes.
    pub bytes: f64,
    /// GPUs of the group.
    pub gpus: f64,
}

/// A copy over the host link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostCopy {
    /// Size, bytes.
    pub bytes: f64,
}

impl Kernel {
    /// Floating-point operations, a multiply-add counted as two.
    pub fn flops(&self) -> f64 {
        match self {
            Self::Gemm(g) => 2.0 * g.rows * g.columns * g.inner * g.groups,
            Self::Prefill(a) => 4.0 * a.batch * a.heads * a.head_dim * a.pairs(),
            Self::Decode(a) => 2.0 * a.batch * a.heads * a.context_tokens * a.pair_width,
            Self::Stream(s) => s.flops,
            Self::AllReduce(_) | Self::HostCopy(_) => 0.0,
        }
    }

    /// Bytes that cross the memory (or the link) at least once.
    pub fn bytes(&self) -> f64 {
        match self {
            Self::Gemm(g) => g.bytes(),
            Self::Prefill(a) => a.bytes(),
            Self::Decode(a) => a.bytes(),
            Self::Stream(s) => s.bytes,
            Self::AllReduce(r) => r.bytes_per_link(),
            Self::HostCopy(c) => c.bytes,
        }
    }

    /// The operator's name in tables and measurement files.
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Gemm(_) => "gemm",
            Self::Prefill(_) => "prefill-attention",
            Self::Decode(_) => "decode-attention",
            Self::Stream(_) => "elementwise",
            Self::AllReduce(_) => "all-reduce",
            Self::HostCopy(_) => "host-copy",
        }
    }
}

impl Gemm {
    /// A plain product of fp16 matrices.
    pub fn fp16(rows: f64, columns: f64, inner: f64) -> Self {
        Self {
            rows,
            columns,
            inner,
            groups: 1.0,
            weight_bytes: 2.0,
        }
    }

    pub(crate) fn bytes(&self) -> f64 {
        let activations = ACTIVATION_BYTES * self.rows * (self.inner + self.columns);
        self.groups * (activations + self.weight_bytes * self.inner * self.columns)
    }
}

impl PrefillAttention {
    /// Query-key pairs of one head of one sequence.
    pub fn pairs(&self) -> f64 {
        // A query at position i (from 1) sees min(i, window) keys.
        let seen_up_to = |i: f64| {
            let full = i.min(self.window);
            full * (full + 1.0) / 2.0 + if i > full { (i - full) * full } else { 0.0 }
        };
        seen_up_to(self.total_tokens()) - seen_up_to(self.cached_tokens)
    }

    /// Cached and new tokens.
    pub fn total_tokens(&self) -> f64 {
        self.cached_tokens + self.new_tokens
    }

    pub(crate) fn bytes(&self) -> f64 {
        let queries_and_outputs = 2.0 * ACTIVATION_BYTES * self.new_tokens * self.heads;
        let keys = self.total_tokens().min(self.new_tokens + self.window);
        let keys_and_values = 2.0 * self.kv_bytes * keys * self.kv_heads;
        self.batch * self.head_dim * (queries_and_outputs + keys_and_values)
    }
}

impl DecodeAttention {
    pub(crate) fn bytes(&self) -> f64 {
        let context = self.context_tokens * self.elements_per_token * self.kv_bytes;
        // The query and the output are half a pair wide each.
        self.batch * (context + ACTIVATION_BYTES * self.heads * self.pair_width)
    }
}

impl AllReduce {
    /// What a ring sends over each GPU's link.
    pub(crate) fn bytes_per_link(&self) -> f64 {
        2.0 * (self.gpus - 1.0) / self.gpus * self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attention(new_tokens: f64, cached_tokens: f64, window: f64) -> PrefillAttention {
        PrefillAttention {
            batch: 1.0,
            new_tokens,
            cached_tokens,
            heads: 4.0,
            kv_heads: 2.0,
            head_dim: 8.0,
            window,
            kv_bytes: 2.0,
        }
    }

    #[test]
    fn pairs_are_those_of_a_loop_over_the_queries() {
        for window in [1.0, 3.0, 7.0, f64::INFINITY] {
            for (new, cached) in [(1, 0), (5, 0), (4, 2), (3, 9), (1, 20), (12, 5)] {
                let slow: f64 = (cached + 1..=cached + new)
                    .map(|i| f64::from(i).min(window))
                    .sum();
                let pairs = attention(f64::from(new), f64::from(cached), window).pairs();
                assert_eq!(pairs, slow, "{new} on {cached}, window {window}");
            }
        }
    }

    #[test]
    fn flops_and_bytes_by_hand() {
        let gemm = Kernel::Gemm(Gemm::fp16(3.0, 5.0, 7.0));
        assert_eq!(
            (gemm.flops(), gemm.bytes()),
            (210.0, 2.0 * (21.0 + 35.0 + 15.0))
        );
        let prefill = Kernel::Prefill(attention(2.0, 3.0, f64::INFINITY));
        // Pairs 4 + 5; q and o 2x2x4 rows, k and v 2x5x2 rows, of 8 fp16.
        assert_eq!(
            (prefill.flops(), prefill.bytes()),
            (4.0 * 4.0 * 8.0 * 9.0, 16.0 * 36.0)
        );
        let decode = Kernel::Decode(DecodeAttention {
            batch: 2.0,
            context_tokens: 10.0,
            heads: 4.0,
            kv_heads: 1.0,
            pair_width: 16.0,
            elements_per_token: 16.0,
            kv_bytes: 1.0,
        });
        assert_eq!(decode.flops(), 2.0 * 2.0 * 4.0 * 10.0 * 16.0);
        assert_eq!(decode.bytes(), 2.0 * (160.0 + 128.0));
        let reduce = Kernel::AllReduce(AllReduce {
            bytes: 100.0,
            gpus: 4.0,
        });
        assert_eq!(reduce.bytes(), 150.0);
    }
}
