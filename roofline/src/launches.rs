//! From a model to the kernels of one forward pass.

use crate::kernel::{
    ACTIVATION_BYTES, AllReduce, DecodeAttention, Gemm, Kernel, PrefillAttention, Stream,
};
use crate::model::{LatentAttention, LayerGroup, Mixer, Mlp, Model};

/// The part of the model that a kernel belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelPart {
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
    /// What the serving engine adds to the kernels; below 0 where they run faster in it than alone.
    Engine,
}

/// A kernel that is launched `count` times in a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Launch {
    /// Which part it belongs to.
    pub(crate) part: ModelPart,
    /// Launches.
    pub(crate) count: f64,
    /// What is launched, on each GPU.
    pub(crate) kernel: Kernel,
}

/// What goes through the layers of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassTokens {
    /// Tokens that pass through every layer.
    pub(crate) rows: f64,
    /// Sequences, whose last token passes through the head.
    pub(crate) sequences: f64,
}

/// Prompts of one shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prompts {
    pub(crate) batch: f64,
    /// Tokens to compute, of each.
    pub(crate) new_tokens: f64,
    /// Tokens before them, of each.
    pub(crate) cached_tokens: f64,
}

/// Sequences that each get one more token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoding {
    pub(crate) sequences: f64,
    /// Tokens that each of them attends to.
    pub(crate) context_tokens: f64,
}

/// Everything but attention proper: the same for prefill and decode.
pub(crate) fn token_launches(model: &Model, gpus: u32, tokens: PassTokens) -> Vec<Launch> {
    let mut pass = PassBuilder::new(model, gpus);
    for group in &model.groups {
        pass.layers(group, tokens.rows);
    }
    pass.head(tokens.sequences);
    pass.launches
}

/// Attention of new tokens on cached ones.
pub(crate) fn prefill_attention_launches(model: &Model, gpus: u32, of: Prompts) -> Vec<Launch> {
    let mut pass = PassBuilder::new(model, gpus);
    for group in &model.groups {
        pass.prefill_attention(group, of);
    }
    pass.launches
}

/// Attention of one new token in each sequence.
pub(crate) fn decode_attention_launches(model: &Model, gpus: u32, of: Decoding) -> Vec<Launch> {
    let mut pass = PassBuilder::new(model, gpus);
    for group in &model.groups {
        pass.decode_attention(group, of);
    }
    pass.launches
}

/// Collects the kernels of a pass on one GPU of a tensor-parallel group.
struct PassBuilder<'a> {
    model: &'a Model,
    gpus: f64,
    launches: Vec<Launch>,
}

/// A weight matrix as one GPU holds it; written `Inputs(width).to(width)`.
struct Weight {
    inputs: f64,
    outputs: f64,
}

struct Inputs(f64);

impl Inputs {
    fn to(self, outputs: f64) -> Weight {
        Weight {
            inputs: self.0,
            outputs,
        }
    }
}

impl<'a> PassBuilder<'a> {
    fn new(model: &'a Model, gpus: u32) -> Self {
        Self {
            model,
            gpus: f64::from(gpus),
            launches: Vec::new(),
        }
    }

    fn add(&mut self, part: ModelPart, count: f64, kernel: Kernel) {
        self.launches.push(Launch {
            part,
            count,
            kernel,
        });
    }

    fn hidden(&self) -> f64 {
        f64::from(self.model.hidden)
    }

    fn product(&self, rows: f64, weight: &Weight) -> Kernel {
        Kernel::Gemm(Gemm {
            rows,
            columns: weight.outputs,
            inner: weight.inputs,
            groups: 1.0,
            weight_bytes: self.model.weight_precision.bytes(),
        })
    }

    /// Key and value heads on each GPU: a head is replicated rather than cut.
    fn kv_heads(&self, kv_heads: u32) -> f64 {
        (f64::from(kv_heads) / self.gpus).max(1.0)
    }

    fn layers(&mut self, group: &LayerGroup, rows: f64) {
        let (hidden, gpus) = (self.hidden(), self.gpus);
        let mut layers = LayerBuilder {
            layers: f64::from(group.layers),
            rows,
            hidden,
            pass: self,
        };
        layers.mixer(&group.mixer);
        layers.mlp(&group.mlp);
        let halves = if group.mlp == Mlp::None { 1.0 } else { 2.0 };
        let count = halves * layers.layers;
        // Each half: one norm fused with the residual sum reads two rows and writes two, one sum over the GPUs.
        self.add(
            ModelPart::Elementwise,
            count,
            elementwise(4.0 * rows * hidden),
        );
        if gpus > 1.0 {
            let bytes = ACTIVATION_BYTES * (rows * hidden);
            let reduce = Kernel::AllReduce(AllReduce { bytes, gpus });
            self.add(ModelPart::Collectives, count, reduce);
        }
    }

    fn head(&mut self, sequences: f64) {
        let weight = Inputs(self.hidden()).to(f64::from(self.model.vocab) / self.gpus);
        self.add(ModelPart::Head, 1.0, self.product(sequences, &weight));
    }

    fn prefill_attention(&mut self, group: &LayerGroup, of: Prompts) {
        let kernel = match &group.mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                window,
            } => PrefillAttention {
                batch: of.batch,
                new_tokens: of.new_tokens,
                cached_tokens: of.cached_tokens,
                heads: f64::from(*heads) / self.gpus,
                kv_heads: self.kv_heads(*kv_heads),
                head_dim: f64::from(*head_dim),
                window: window.map_or(f64::INFINITY, f64::from),
                kv_bytes: self.model.kv_precision.bytes(),
            },
            Mixer::Mla(latent) => {
                let widths = LatentWidths::of(latent, self.gpus);
                // Prefill expands the latents of the whole context to keys and values of every head.
                let rows = of.batch * (of.new_tokens + of.cached_tokens);
                self.add_expansion(group, rows, &widths);
                PrefillAttention {
                    batch: of.batch,
                    new_tokens: of.new_tokens,
                    cached_tokens: of.cached_tokens,
                    heads: widths.heads,
                    kv_heads: widths.heads,
                    head_dim: f64::midpoint(widths.nope + widths.rope, widths.value),
                    window: f64::INFINITY,
                    kv_bytes: ACTIVATION_BYTES,
                }
            }
            Mixer::Ssm { .. } => return,
        };
        let layers = f64::from(group.layers);
        self.add(ModelPart::Attention, layers, Kernel::Prefill(kernel));
    }

    fn decode_attention(&mut self, group: &LayerGroup, of: Decoding) {
        let layers = f64::from(group.layers);
        let kv_bytes = self.model.kv_precision.bytes();
        let kernel = match &group.mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                window,
            } => {
                let pair_width = 2.0 * f64::from(*head_dim);
                let kv_heads = self.kv_heads(*kv_heads);
                DecodeAttention {
                    batch: of.sequences,
                    context_tokens: of
                        .context_tokens
                        .min(window.map_or(f64::INFINITY, f64::from)),
                    heads: f64::from(*heads) / self.gpus,
                    kv_heads,
                    pair_width,
                    elements_per_token: kv_heads * pair_width,
                    kv_bytes,
                }
            }
            Mixer::Mla(latent) => {
                let widths = LatentWidths::of(latent, self.gpus);
                // Decode folds the expansion into query and output: one latent serves all heads, on every GPU.
                self.add_expansion(group, of.sequences, &widths);
                DecodeAttention {
                    batch: of.sequences,
                    context_tokens: of.context_tokens,
                    heads: widths.heads,
                    kv_heads: 1.0,
                    pair_width: 2.0 * widths.rank + widths.rope,
                    elements_per_token: widths.rank + widths.rope,
                    kv_bytes,
                }
            }
            Mixer::Ssm {
                inner, state, conv, ..
            } => {
                // The state is read and written.
                let elements = f64::from(*inner) / self.gpus * f64::from(state + conv);
                let kernel = elementwise(2.0 * of.sequences * elements);
                self.add(ModelPart::Ssm, layers, kernel);
                return;
            }
        };
        self.add(ModelPart::Attention, layers, Kernel::Decode(kernel));
    }

    /// The product that turns latents of `rows` tokens into keys and values of every head.
    fn add_expansion(&mut self, group: &LayerGroup, rows: f64, widths: &LatentWidths) {
        let weight = Inputs(widths.rank).to(widths.heads * (widths.nope + widths.value));
        let kernel = self.product(rows, &weight);
        self.add(ModelPart::Attention, f64::from(group.layers), kernel);
    }
}

fn elementwise(elements: f64) -> Kernel {
    let bytes = ACTIVATION_BYTES * elements;
    Kernel::Stream(Stream { bytes, flops: 0.0 })
}

/// Collects the kernels of equal layers that `rows` tokens pass through.
struct LayerBuilder<'a, 'm> {
    layers: f64,
    rows: f64,
    hidden: f64,
    pass: &'a mut PassBuilder<'m>,
}

impl LayerBuilder<'_, '_> {
    fn add(&mut self, part: ModelPart, kernel: Kernel) {
        self.pass.add(part, self.layers, kernel);
    }

    fn product(&mut self, part: ModelPart, weight: &Weight) {
        self.add(part, self.pass.product(self.rows, weight));
    }

    fn mixer(&mut self, mixer: &Mixer) {
        match *mixer {
            Mixer::Attention {
                heads,
                kv_heads,
                head_dim,
                ..
            } => {
                let width = f64::from(head_dim);
                let queries = f64::from(heads) / self.pass.gpus * width;
                let keys = self.pass.kv_heads(kv_heads) * width;
                self.projections(queries, keys);
            }
            Mixer::Mla(latent) => self.latent_projections(&latent),
            Mixer::Ssm {
                inner,
                state,
                conv,
                dt_rank,
            } => {
                let inner = f64::from(inner) / self.pass.gpus;
                let [state, conv, dt_rank] = [state, conv, dt_rank].map(f64::from);
                self.state_space_projections(inner, dt_rank, state);
                // The scan reads x, dt, z and writes y; per state element it multiplies, adds and exponentiates.
                let bytes = ACTIVATION_BYTES * self.rows * (4.0 * inner + 2.0 * state);
                let flops = self.rows * inner * (9.0 * state + 2.0 * conv);
                self.add(ModelPart::Ssm, Kernel::Stream(Stream { bytes, flops }));
            }
        }
    }

    /// Projections to `queries` and twice `keys` elements and back, and the rotary embedding.
    fn projections(&mut self, queries: f64, keys: f64) {
        let hidden = self.hidden;
        for weight in [
            Inputs(hidden).to(queries + 2.0 * keys),
            Inputs(queries).to(hidden),
        ] {
            self.product(ModelPart::Projections, &weight);
        }
        let rotary = elementwise(2.0 * self.rows * (queries + keys));
        self.add(ModelPart::Elementwise, rotary);
    }

    fn state_space_projections(&mut self, inner: f64, dt_rank: f64, state: f64) {
        let hidden = self.hidden;
        for weight in [
            Inputs(hidden).to(2.0 * inner),
            Inputs(inner).to(dt_rank + 2.0 * state),
            Inputs(dt_rank).to(inner),
            Inputs(inner).to(hidden),
        ] {
            self.product(ModelPart::Ssm, &weight);
        }
        self.add(ModelPart::Ssm, elementwise(2.0 * self.rows * inner));
    }

    fn latent_projections(&mut self, latent: &LatentAttention) {
        let widths = LatentWidths::of(latent, self.pass.gpus);
        let hidden = self.hidden;
        let queries = widths.heads * (widths.nope + widths.rope);
        // Queries go through their rank, where they are compressed too.
        let query_inputs = widths.query_rank.unwrap_or(hidden);
        let compression = widths.query_rank.map(|rank| Inputs(hidden).to(rank));
        let others = [
            Inputs(query_inputs).to(queries),
            Inputs(hidden).to(widths.rank + widths.rope),
            Inputs(widths.heads * widths.value).to(hidden),
        ];
        for weight in compression.into_iter().chain(others) {
            self.product(ModelPart::Projections, &weight);
        }
        let rotary = elementwise(2.0 * self.rows * (queries + widths.rank));
        self.add(ModelPart::Elementwise, rotary);
    }

    fn mlp(&mut self, mlp: &Mlp) {
        match *mlp {
            Mlp::None => {}
            Mlp::Dense {
                intermediate,
                gated,
            } => self.dense(ModelPart::Mlp, intermediate, gated),
            Mlp::Moe {
                experts,
                active,
                intermediate,
                shared,
            } => {
                let router = Inputs(self.hidden).to(f64::from(experts));
                self.product(ModelPart::Experts, &router);
                self.experts(&RoutedExperts {
                    experts: f64::from(experts),
                    active: f64::from(active),
                    inner: f64::from(intermediate) / self.pass.gpus,
                });
                if shared > 0 {
                    self.dense(ModelPart::Experts, shared, true);
                }
            }
        }
    }

    fn dense(&mut self, part: ModelPart, intermediate: u32, gated: bool) {
        let hidden = self.hidden;
        let inner = f64::from(intermediate) / self.pass.gpus;
        let inputs = if gated { 2.0 } else { 1.0 };
        let up = Inputs(hidden).to(inputs * inner);
        let down = Inputs(inner).to(hidden);
        self.product(part, &up);
        self.product(part, &down);
        self.add(part, elementwise((inputs + 1.0) * self.rows * inner));
    }

    /// Routed experts, one grouped product each way; every expert cut over the GPUs.
    fn experts(&mut self, of: &RoutedExperts) {
        let (rows, hidden) = (self.rows, self.hidden);
        // Experts that at least one of `rows` tokens picks, were all as likely.
        let groups = of.experts * (1.0 - (1.0 - of.active / of.experts).powf(rows));
        let each = rows * of.active / groups.max(f64::MIN_POSITIVE);
        let weight_bytes = self.pass.model.weight_precision.bytes();
        for (columns, inner) in [(2.0 * of.inner, hidden), (hidden, of.inner)] {
            let gemm = Gemm {
                rows: each,
                columns,
                inner,
                groups,
                weight_bytes,
            };
            self.add(ModelPart::Experts, Kernel::Gemm(gemm));
        }
        let activation = elementwise(3.0 * rows * of.active * of.inner);
        self.add(ModelPart::Experts, activation);
    }
}

/// Routed experts as one GPU holds them.
struct RoutedExperts {
    experts: f64,
    /// How many of them a token uses.
    active: f64,
    /// Inner width of one.
    inner: f64,
}

/// Widths of latent attention, heads as held by one GPU.
struct LatentWidths {
    heads: f64,
    query_rank: Option<f64>,
    rank: f64,
    nope: f64,
    rope: f64,
    value: f64,
}

impl LatentWidths {
    fn of(latent: &LatentAttention, gpus: f64) -> Self {
        Self {
            heads: f64::from(latent.heads) / gpus,
            query_rank: latent.q_lora_rank.map(f64::from),
            rank: f64::from(latent.kv_lora_rank),
            nope: f64::from(latent.qk_nope_head_dim),
            rope: f64::from(latent.qk_rope_head_dim),
            value: f64::from(latent.v_head_dim),
        }
    }
}
