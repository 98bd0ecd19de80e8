//! From a model to the kernels of one forward pass.

use crate::kernel::{
    ACTIVATION_BYTES, AllReduce, DecodeAttention, Gemm, Kernel, PrefillAttention, Stream,
};
use crate::model::{LayerGroup, Mixer, Mlp, Model};

/// The part of the model that a kernel belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Query, key, value and output projections of attention.
    Projections,
    /// Scores and weighted values; for latent attention also the expansion of cached latents.
    Attention,
    /// Dense feed-forward layers.
    Mlp,
    /// Router and experts.
    Experts,
    /// State-space layers.
    Ssm,
    /// Norms, residual sums, rotary embedding.
    Elementwise,
    /// The projection to the vocabulary, of the last token of each sequence.
    Head,
    /// Tensor-parallel sums.
    Collectives,
}

/// A kernel that runs `count` times in a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Which part it belongs to.
    pub part: Part,
    /// Launches.
    pub count: f64,
    /// What is launched, on each GPU.
    pub kernel: Kernel,
}

/// Kernels of a pass on one GPU of a tensor-parallel group.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    model: &'a Model,
    gpus: f64,
    steps: Vec<Step>,
}

/// Everything but attention proper: the same for prefill and decode.
///
/// `rows` tokens pass through every layer, `sequences` of them through the head.
pub(crate) fn token_steps(model: &Model, gpus: u32, rows: f64, sequences: f64) -> Vec<Step> {
    let mut plan = Plan::new(model, gpus);
    for group in &model.groups {
        plan.layer(group, rows);
    }
    plan.head(sequences);
    plan.steps
}

/// Attention of `new` tokens a sequence on `cached` ones.
pub(crate) fn prefill_attention_steps(
    model: &Model,
    gpus: u32,
    [batch, new, cached]: [f64; 3],
) -> Vec<Step> {
    let mut plan = Plan::new(model, gpus);
    for group in &model.groups {
        plan.prefill_attention(group, batch, new, cached);
    }
    plan.steps
}

/// Attention of one new token in each of `batch` sequences of `context` tokens.
pub(crate) fn decode_attention_steps(
    model: &Model,
    gpus: u32,
    batch: f64,
    context: f64,
) -> Vec<Step> {
    let mut plan = Plan::new(model, gpus);
    for group in &model.groups {
        plan.decode_attention(group, batch, context);
    }
    plan.steps
}

impl<'a> Plan<'a> {
    fn new(model: &'a Model, gpus: u32) -> Self {
        Self {
            model,
            gpus: f64::from(gpus),
            steps: Vec::new(),
        }
    }

    fn add(&mut self, part: Part, count: f64, kernel: Kernel) {
        self.steps.push(Step {
            part,
            count,
            kernel,
        });
    }

    fn gemm(&mut self, part: Part, count: f64, rows: f64, columns: f64, inner: f64) {
        let weight_bytes = self.model.weight_precision.bytes();
        let gemm = Gemm {
            rows,
            columns,
            inner,
            groups: 1.0,
            weight_bytes,
        };
        self.add(part, count, Kernel::Gemm(gemm));
    }

    fn stream(&mut self, part: Part, count: f64, elements: f64) {
        let bytes = ACTIVATION_BYTES * elements;
        self.add(part, count, Kernel::Stream(Stream { bytes, flops: 0.0 }));
    }

    fn layer(&mut self, group: &LayerGroup, rows: f64) {
        let layers = f64::from(group.layers);
        let hidden = f64::from(self.model.hidden);
        self.mixer(&group.mixer, layers, rows, hidden);
        self.mlp(&group.mlp, layers, rows, hidden);
        let halves = if group.mlp == Mlp::None { 1.0 } else { 2.0 };
        // Each half: one norm fused with the residual sum reads two rows and writes two, one sum over the GPUs.
        self.stream(Part::Elementwise, halves * layers, 4.0 * rows * hidden);
        self.all_reduce(halves * layers, rows * hidden);
    }

    fn all_reduce(&mut self, count: f64, elements: f64) {
        if self.gpus > 1.0 {
            let reduce = AllReduce {
                bytes: ACTIVATION_BYTES * elements,
                gpus: self.gpus,
            };
            self.add(Part::Collectives, count, Kernel::AllReduce(reduce));
        }
    }

    fn mixer(&mut self, mixer: &Mixer, layers: f64, rows: f64, hidden: f64) {
        match *mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                ..
            } => {
                let width = f64::from(head_dim);
                let heads = f64::from(heads) / self.gpus * width;
                let kv_heads = self.kv_heads(kv_heads) * width;
                self.gemm(
                    Part::Projections,
                    layers,
                    rows,
                    heads + 2.0 * kv_heads,
                    hidden,
                );
                self.gemm(Part::Projections, layers, rows, hidden, heads);
                self.stream(Part::Elementwise, layers, 2.0 * rows * (heads + kv_heads));
            }
            Mixer::Mla { .. } => self.latent_projections(mixer, layers, rows, hidden),
            Mixer::Ssm {
                inner,
                state,
                conv,
                dt_rank,
            } => {
                let inner = f64::from(inner) / self.gpus;
                let [state, conv, dt_rank] = [state, conv, dt_rank].map(f64::from);
                self.gemm(Part::Ssm, layers, rows, 2.0 * inner, hidden);
                self.gemm(Part::Ssm, layers, rows, dt_rank + 2.0 * state, inner);
                self.gemm(Part::Ssm, layers, rows, inner, dt_rank);
                self.gemm(Part::Ssm, layers, rows, hidden, inner);
                self.stream(Part::Ssm, layers, 2.0 * rows * inner);
                // The scan reads x, dt, z and writes y; per state element it multiplies, adds and exponentiates.
                let bytes = ACTIVATION_BYTES * rows * (4.0 * inner + 2.0 * state);
                let flops = rows * inner * (9.0 * state + 2.0 * conv);
                self.add(Part::Ssm, layers, Kernel::Stream(Stream { bytes, flops }));
            }
        }
    }

    /// Key and value heads on each GPU: a head is replicated rather than cut.
    fn kv_heads(&self, kv_heads: u32) -> f64 {
        (f64::from(kv_heads) / self.gpus).max(1.0)
    }

    fn latent_projections(&mut self, mixer: &Mixer, layers: f64, rows: f64, hidden: f64) {
        let Some(latent) = Latent::of(mixer, self.gpus) else {
            return;
        };
        let queries = latent.heads * (latent.nope + latent.rope);
        match latent.query_rank {
            Some(rank) => {
                self.gemm(Part::Projections, layers, rows, rank, hidden);
                self.gemm(Part::Projections, layers, rows, queries, rank);
            }
            None => self.gemm(Part::Projections, layers, rows, queries, hidden),
        }
        self.gemm(
            Part::Projections,
            layers,
            rows,
            latent.rank + latent.rope,
            hidden,
        );
        self.gemm(
            Part::Projections,
            layers,
            rows,
            hidden,
            latent.heads * latent.value,
        );
        self.stream(
            Part::Elementwise,
            layers,
            2.0 * rows * (queries + latent.rank),
        );
    }

    fn mlp(&mut self, mlp: &Mlp, layers: f64, rows: f64, hidden: f64) {
        match *mlp {
            Mlp::None => {}
            Mlp::Dense {
                intermediate,
                gated,
            } => {
                self.dense(Part::Mlp, layers, rows, f64::from(intermediate), gated);
            }
            Mlp::Moe {
                experts,
                active,
                intermediate,
                shared,
            } => {
                self.gemm(Part::Experts, layers, rows, f64::from(experts), hidden);
                self.experts(layers, rows, [experts, active, intermediate].map(f64::from));
                if shared > 0 {
                    self.dense(Part::Experts, layers, rows, f64::from(shared), true);
                }
            }
        }
    }

    fn dense(&mut self, part: Part, layers: f64, rows: f64, intermediate: f64, gated: bool) {
        let hidden = f64::from(self.model.hidden);
        let inner = intermediate / self.gpus;
        let inputs = if gated { 2.0 } else { 1.0 };
        self.gemm(part, layers, rows, inputs * inner, hidden);
        self.gemm(part, layers, rows, hidden, inner);
        self.stream(part, layers, (inputs + 1.0) * rows * inner);
    }

    /// Routed experts, one grouped product each way; every expert cut over the GPUs.
    fn experts(&mut self, layers: f64, rows: f64, [experts, active, intermediate]: [f64; 3]) {
        let hidden = f64::from(self.model.hidden);
        let inner = intermediate / self.gpus;
        // Experts that at least one of `rows` tokens picks, were all as likely.
        let groups = experts * (1.0 - (1.0 - active / experts).powf(rows));
        let each = rows * active / groups.max(f64::MIN_POSITIVE);
        let weight_bytes = self.model.weight_precision.bytes();
        for (columns, inner) in [(2.0 * inner, hidden), (hidden, inner)] {
            let gemm = Gemm {
                rows: each,
                columns,
                inner,
                groups,
                weight_bytes,
            };
            self.add(Part::Experts, layers, Kernel::Gemm(gemm));
        }
        self.stream(Part::Experts, layers, 3.0 * rows * active * inner);
    }

    fn head(&mut self, sequences: f64) {
        let vocab = f64::from(self.model.vocab) / self.gpus;
        self.gemm(
            Part::Head,
            1.0,
            sequences,
            vocab,
            f64::from(self.model.hidden),
        );
    }

    fn prefill_attention(&mut self, group: &LayerGroup, batch: f64, new: f64, cached: f64) {
        let layers = f64::from(group.layers);
        let (heads, kv_heads, head_dim, window, kv_bytes) = match group.mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                window,
            } => (
                f64::from(heads) / self.gpus,
                self.kv_heads(kv_heads),
                f64::from(head_dim),
                window.map_or(f64::INFINITY, f64::from),
                self.model.kv_precision.bytes(),
            ),
            Mixer::Mla { .. } => {
                let Some(latent) = Latent::of(&group.mixer, self.gpus) else {
                    return;
                };
                // Prefill expands the latents of the whole context to keys and values of every head.
                let columns = latent.heads * (latent.nope + latent.value);
                let rows = batch * (new + cached);
                self.gemm(Part::Attention, layers, rows, columns, latent.rank);
                let width = f64::midpoint(latent.nope + latent.rope, latent.value);
                (
                    latent.heads,
                    latent.heads,
                    width,
                    f64::INFINITY,
                    ACTIVATION_BYTES,
                )
            }
            Mixer::Ssm { .. } => return,
        };
        let kernel = PrefillAttention {
            batch,
            new_tokens: new,
            cached_tokens: cached,
            heads,
            kv_heads,
            head_dim,
            window,
            kv_bytes,
        };
        self.add(Part::Attention, layers, Kernel::Prefill(kernel));
    }

    fn decode_attention(&mut self, group: &LayerGroup, batch: f64, context: f64) {
        let layers = f64::from(group.layers);
        let kv_bytes = self.model.kv_precision.bytes();
        let kernel = match group.mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                window,
            } => {
                let pair_width = 2.0 * f64::from(head_dim);
                let kv_heads = self.kv_heads(kv_heads);
                DecodeAttention {
                    batch,
                    context_tokens: context.min(window.map_or(f64::INFINITY, f64::from)),
                    heads: f64::from(heads) / self.gpus,
                    kv_heads,
                    pair_width,
                    elements_per_token: kv_heads * pair_width,
                    kv_bytes,
                }
            }
            Mixer::Mla { .. } => {
                let Some(latent) = Latent::of(&group.mixer, self.gpus) else {
                    return;
                };
                // Decode folds the expansion into query and output: one latent serves all heads, on every GPU.
                let columns = latent.heads * (latent.nope + latent.value);
                self.gemm(Part::Attention, layers, batch, columns, latent.rank);
                DecodeAttention {
                    batch,
                    context_tokens: context,
                    heads: latent.heads,
                    kv_heads: 1.0,
                    pair_width: 2.0 * latent.rank + latent.rope,
                    elements_per_token: latent.rank + latent.rope,
                    kv_bytes,
                }
            }
            Mixer::Ssm {
                inner, state, conv, ..
            } => {
                // The state is read and written.
                let elements = f64::from(inner) / self.gpus * f64::from(state + conv);
                self.stream(Part::Ssm, layers, 2.0 * batch * elements);
                return;
            }
        };
        self.add(Part::Attention, layers, Kernel::Decode(kernel));
    }
}

/// Widths of latent attention, heads as held by one GPU.
struct Latent {
    heads: f64,
    query_rank: Option<f64>,
    rank: f64,
    nope: f64,
    rope: f64,
    value: f64,
}

impl Latent {
    fn of(mixer: &Mixer, gpus: f64) -> Option<Self> {
        match *mixer {
            Mixer::Mla {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => Some(Self {
                heads: f64::from(heads) / gpus,
                query_rank: q_lora_rank.map(f64::from),
                rank: f64::from(kv_lora_rank),
                nope: f64::from(qk_nope_head_dim),
                rope: f64::from(qk_rope_head_dim),
                value: f64::from(v_head_dim),
            }),
            Mixer::Attention { .. } | Mixer::Ssm { .. } => None,
        }
    }
}
