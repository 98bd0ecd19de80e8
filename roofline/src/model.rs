//! Models, as far as cost depends on them: layers, widths, formats.

use policy_api::StateBytes;
use serde::{Deserialize, Serialize};

use crate::error::RooflineError;

/// Number format of weights or of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// fp16 or bf16, two bytes.
    #[default]
    Fp16,
    /// One byte.
    Fp8,
    /// Half a byte.
    Int4,
}

impl Precision {
    /// Bytes per element.
    pub fn bytes(self) -> f64 {
        match self {
            Self::Fp16 => 2.0,
            Self::Fp8 => 1.0,
            Self::Int4 => 0.5,
        }
    }
}

/// How a layer mixes tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Mixer {
    /// Softmax attention: multi-head, grouped-query or multi-query by `kv_heads`.
    Attention {
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Width of one head.
        head_dim: u32,
        /// Tokens a query can look back on, itself included; `None`: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<u32>,
    },
    /// DeepSeek's multi-head latent attention.
    Mla(LatentAttention),
    /// Selective state space (Mamba): a state of fixed size per sequence instead of a cache that grows.
    Ssm {
        /// Inner width (`expand * hidden`).
        inner: u32,
        /// State size per inner channel.
        state: u32,
        /// Width of the causal convolution.
        conv: u32,
        /// Rank of the time-step projection.
        dt_rank: u32,
    },
}

/// Multi-head latent attention (arXiv 2405.04434): one compressed latent per token is cached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatentAttention {
    /// Query heads.
    pub heads: u32,
    /// Width of the compressed query; `None`: queries are projected directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q_lora_rank: Option<u32>,
    /// Width of the cached latent.
    pub kv_lora_rank: u32,
    /// Width of a head's part without position.
    pub qk_nope_head_dim: u32,
    /// Width of the rotary part, cached once for all heads.
    pub qk_rope_head_dim: u32,
    /// Width of a value head.
    pub v_head_dim: u32,
}

/// The feed-forward half of a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Mlp {
    /// No feed-forward half (pure Mamba blocks).
    None,
    /// One network for all tokens.
    Dense {
        /// Inner width.
        intermediate: u32,
        /// Three matrices (gate, up, down) instead of two.
        gated: bool,
    },
    /// Mixture of experts; every expert is gated.
    Moe {
        /// Routed experts.
        experts: u32,
        /// Routed experts a token uses.
        active: u32,
        /// Inner width of one routed expert.
        intermediate: u32,
        /// Inner width of the expert all tokens use; 0: none.
        #[serde(default)]
        shared: u32,
    },
}

/// Layers that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerGroup {
    /// How many.
    pub layers: u32,
    /// How they mix tokens.
    pub mixer: Mixer,
    /// Their feed-forward half.
    pub mlp: Mlp,
}

/// What a prefix cache has to hold of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixMemory {
    /// KV bytes that every token adds.
    pub kv_bytes_per_token: u64,
    /// What a saved state weighs, where a prompt resumes only from one.
    pub state: Option<StateBytes>,
}

/// A transformer, hybrid or state-space language model, as far as cost depends on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Preset name, or path of the description.
    pub name: String,
    /// Weights, embeddings included. Counted from the shapes where the description gives no number.
    #[serde(default)]
    pub parameters: f64,
    /// Weights that one token multiplies with; less than `parameters` with experts.
    #[serde(default)]
    pub active_parameters: f64,
    /// Width of the residual stream.
    pub hidden: u32,
    /// Vocabulary size.
    pub vocab: u32,
    /// The head shares the embedding's matrix.
    #[serde(default)]
    pub tied_embeddings: bool,
    /// Format of the weights.
    #[serde(default)]
    pub weight_precision: Precision,
    /// Format of cached keys and values.
    #[serde(default)]
    pub kv_precision: Precision,
    /// Bytes of recurrent state, where they are not those of the shapes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurrent_bytes: Option<u64>,
    /// The layers, in groups of equal ones; order does not matter to cost.
    pub groups: Vec<LayerGroup>,
}

/// The attention of layers that look back equally far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AttentionWidth {
    /// Tokens that a query can look back on, itself included.
    pub(crate) window: f64,
    /// Heads times their width, summed over the layers.
    pub(crate) width: f64,
}

#[derive(Deserialize)]
struct Presets {
    model: Vec<Model>,
}

impl Model {
    /// The preset of that name.
    ///
    /// # Errors
    /// [`RooflineError::UnknownName`] suggests the nearest preset and lists all.
    pub fn named(name: &str) -> Result<Self, RooflineError> {
        let presets = Self::presets()?;
        let found = params::find("model", &presets, |m| &m.name, name)?;
        Ok(found.clone())
    }

    /// All presets, in the order of their file.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] if the compiled-in file is not well formed.
    pub fn presets() -> Result<Vec<Self>, RooflineError> {
        let file: Presets = toml::from_str(include_str!("../data/models.toml"))
            .map_err(|e| RooflineError::invalid("models.toml", e.to_string()))?;
        Ok(file.model.into_iter().map(Self::counted).collect())
    }

    /// Fills in the parameter counts that the description left out.
    pub(crate) fn counted(mut self) -> Self {
        if self.parameters == 0.0 {
            self.parameters = self.count(LayerGroup::parameters);
            self.active_parameters = self.count(LayerGroup::active_parameters);
        } else if self.active_parameters == 0.0 {
            self.active_parameters = self.parameters;
        }
        self
    }

    fn count(&self, of_layer: impl Fn(&LayerGroup, f64) -> f64) -> f64 {
        let hidden = f64::from(self.hidden);
        let tables = if self.tied_embeddings { 1.0 } else { 2.0 };
        let layers: f64 = self
            .groups
            .iter()
            .map(|g| f64::from(g.layers) * of_layer(g, hidden))
            .sum();
        tables * f64::from(self.vocab) * hidden + layers
    }

    /// All layers.
    pub fn layers(&self) -> u32 {
        self.groups.iter().map(|g| g.layers).sum()
    }

    /// Widths of attention summed over the layers that look back equally far, with how many tokens that is; infinite without a
    /// window. A layer's width is its heads times theirs; where keys and values differ, their mean. State-space layers have none.
    pub(crate) fn attention_widths(&self) -> Vec<AttentionWidth> {
        let mut widths: Vec<AttentionWidth> = Vec::new();
        for group in &self.groups {
            let Some(width) = group.mixer.attention_width() else {
                continue;
            };
            let width = f64::from(group.layers) * width;
            let window = group.mixer.window().map_or(f64::INFINITY, f64::from);
            match widths.iter_mut().find(|w| w.window == window) {
                Some(same) => same.width += width,
                None => widths.push(AttentionWidth { window, width }),
            }
        }
        widths
    }

    /// Bytes of KV that one more token of context costs. A sliding window counts in full: its cap is per sequence.
    pub fn kv_bytes_per_token(&self) -> u64 {
        let elements: f64 = self
            .groups
            .iter()
            .map(|g| f64::from(g.layers) * g.mixer.kv_elements())
            .sum();
        (elements * self.kv_precision.bytes()) as u64
    }

    /// Bytes of recurrent state per sequence besides its KV; 0 without state-space layers.
    pub fn state_bytes(&self) -> u64 {
        if let Some(bytes) = self.recurrent_bytes {
            return bytes;
        }
        let elements: f64 = self
            .groups
            .iter()
            .map(|g| f64::from(g.layers) * g.mixer.state_elements())
            .sum();
        (elements * self.kv_precision.bytes()) as u64
    }

    /// What a prefix cache has to hold for a prompt to resume. Several windows count as the longest, with the KV that
    /// fills them all: shallow states come out a little too light then.
    ///
    /// State-space layers and, beside layers that look back on everything, those with a window make a model that
    /// resumes only where a state was saved. Where all layers have a window, their KV is held in full, as engines
    /// without a window-aware cache hold it: nothing else would grow with the prompt.
    pub fn prefix_memory(&self) -> PrefixMemory {
        let windows: Vec<_> = self
            .groups
            .iter()
            .filter_map(|group| Some((u64::from(group.mixer.window()?), self.kv_bytes_of(group))))
            .collect();
        let in_windows: u64 = windows.iter().map(|(_, kv_bytes)| kv_bytes).sum();
        let all = self.kv_bytes_per_token();
        if (in_windows == all || in_windows == 0) && self.state_bytes() == 0 {
            return PrefixMemory {
                kv_bytes_per_token: all,
                state: None,
            };
        }
        let window_tokens = windows.iter().map(|(tokens, _)| *tokens).max().unwrap_or(0);
        let full: u64 = windows
            .iter()
            .map(|(tokens, kv_bytes)| tokens * kv_bytes)
            .sum();
        PrefixMemory {
            kv_bytes_per_token: all - in_windows,
            state: Some(StateBytes {
                fixed: self.state_bytes(),
                per_token: full.checked_div(window_tokens).unwrap_or(0),
                window_tokens,
            }),
        }
    }

    fn kv_bytes_of(&self, group: &LayerGroup) -> u64 {
        let elements = f64::from(group.layers) * group.mixer.kv_elements();
        (elements * self.kv_precision.bytes()) as u64
    }

    /// Bytes of all weights.
    pub fn weight_bytes(&self) -> f64 {
        self.parameters * self.weight_precision.bytes()
    }
}

impl LayerGroup {
    fn parameters(&self, hidden: f64) -> f64 {
        // Two norms of the residual stream.
        2.0 * hidden + self.mixer.parameters(hidden) + self.mlp.parameters(hidden, true)
    }

    fn active_parameters(&self, hidden: f64) -> f64 {
        2.0 * hidden + self.mixer.parameters(hidden) + self.mlp.parameters(hidden, false)
    }
}

impl Mixer {
    fn window(&self) -> Option<u32> {
        match self {
            Self::Attention { window, .. } => *window,
            Self::Mla(_) | Self::Ssm { .. } => None,
        }
    }

    /// Elements that scoring one token against another multiplies and adds, and weighting its value again.
    fn attention_width(&self) -> Option<f64> {
        match *self {
            Self::Attention {
                heads, head_dim, ..
            } => Some(f64::from(heads) * f64::from(head_dim)),
            Self::Mla(latent) => {
                let key = f64::from(latent.qk_nope_head_dim) + f64::from(latent.qk_rope_head_dim);
                let mean = f64::midpoint(key, f64::from(latent.v_head_dim));
                Some(f64::from(latent.heads) * mean)
            }
            Self::Ssm { .. } => None,
        }
    }

    /// Elements one token adds to the cache of one layer.
    fn kv_elements(&self) -> f64 {
        match *self {
            Self::Attention {
                kv_heads, head_dim, ..
            } => 2.0 * f64::from(kv_heads) * f64::from(head_dim),
            Self::Mla(latent) => {
                f64::from(latent.kv_lora_rank) + f64::from(latent.qk_rope_head_dim)
            }
            Self::Ssm { .. } => 0.0,
        }
    }

    /// Elements of recurrent state of one layer.
    fn state_elements(&self) -> f64 {
        match *self {
            Self::Ssm {
                inner, state, conv, ..
            } => f64::from(inner) * (f64::from(state) + f64::from(conv) - 1.0),
            Self::Attention { .. } | Self::Mla(_) => 0.0,
        }
    }

    fn parameters(&self, hidden: f64) -> f64 {
        match *self {
            Self::Attention {
                heads,
                kv_heads,
                head_dim,
                ..
            } => {
                let head_dim = f64::from(head_dim);
                hidden * head_dim * 2.0 * (f64::from(heads) + f64::from(kv_heads))
            }
            Self::Mla(latent) => latent.parameters(hidden),
            Self::Ssm {
                inner,
                state,
                conv,
                dt_rank,
            } => {
                let (inner, state, dt_rank) =
                    (f64::from(inner), f64::from(state), f64::from(dt_rank));
                let projections = 3.0 * hidden * inner + inner * (dt_rank + 2.0 * state);
                // Time step (with bias), convolution (with bias), A, D.
                projections + dt_rank * inner + inner * (f64::from(conv) + state + 3.0)
            }
        }
    }
}

impl LatentAttention {
    fn parameters(&self, hidden: f64) -> f64 {
        let heads = f64::from(self.heads);
        let latent = f64::from(self.kv_lora_rank);
        let nope = f64::from(self.qk_nope_head_dim);
        let rope = f64::from(self.qk_rope_head_dim);
        let value = f64::from(self.v_head_dim);
        let query = match self.q_lora_rank.map(f64::from) {
            Some(rank) => rank * (hidden + heads * (nope + rope)),
            None => hidden * heads * (nope + rope),
        };
        query + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden
    }
}

impl Mlp {
    fn parameters(&self, hidden: f64, all_experts: bool) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Dense {
                intermediate,
                gated,
            } => (if gated { 3.0 } else { 2.0 }) * hidden * f64::from(intermediate),
            Self::Moe {
                experts,
                active,
                intermediate,
                shared,
            } => {
                let used = f64::from(if all_experts { experts } else { active });
                let inner = used * f64::from(intermediate) + f64::from(shared);
                3.0 * hidden * inner + hidden * f64::from(experts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(name: &str) -> PrefixMemory {
        Model::named(name).unwrap().prefix_memory()
    }

    /// Marconi (arXiv 2411.19379): fp16 KV takes 4*d bytes per token and attention layer, a state
    /// 2*d*n + 8*(2*d + 2*n) per layer.
    #[test]
    fn a_checkpoint_of_the_hybrid_weighs_408_75_tokens() {
        let (d, n) = (4096, 128);
        let PrefixMemory {
            kv_bytes_per_token,
            state,
        } = memory("hybrid-7b");
        let state = state.unwrap();
        assert_eq!(kv_bytes_per_token, 4 * 4 * d);
        assert_eq!(state.at(1), 24 * (2 * d * n + 8 * (2 * d + 2 * n)));
        assert_eq!((state.at(1), state.at(100_000)), (26_787_840, 26_787_840));
        assert_eq!(state.at(1) as f64 / kv_bytes_per_token as f64, 408.75);
    }

    #[test]
    fn what_a_cache_holds_depends_on_how_layers_look_back() {
        let jamba = memory("jamba-v0.1");
        assert_eq!(jamba.kv_bytes_per_token, 4 * 2 * 8 * 128 * 2);
        assert_eq!(jamba.state.unwrap().at(7), 28 * 8192 * (16 + 3) * 2);
        // Of 48 layers 40 look back on 1,024 tokens; until then their state grows.
        let gemma = memory("gemma-3-12b");
        let layer = 2 * 8 * 256 * 2;
        assert_eq!(gemma.kv_bytes_per_token, 8 * layer);
        let state = gemma.state.unwrap();
        assert_eq!(state.at(100), 40 * layer * 100);
        assert_eq!(state.at(1 << 20), 40 * layer * 1024);
        for per_token in ["course-7b", "deepseek-v3", "mistral-7b"] {
            assert_eq!(memory(per_token).state, None, "{per_token}");
        }
    }

    #[test]
    fn gemma_has_the_parameters_it_is_named_for() {
        let parameters = Model::named("gemma-3-12b").unwrap().parameters;
        assert!((parameters / 11.77e9 - 1.0).abs() < 0.01, "{parameters}");
    }
}
