//! Models from the `config.json` that Hugging Face repositories carry.

use serde::Deserialize;

use crate::error::RooflineError;
use crate::model::{LatentAttention, LayerGroup, Mixer, Mlp, Model, Precision};

/// The keys that cost depends on. Every family uses a subset.
#[derive(Debug, Deserialize)]
struct Config {
    model_type: String,
    hidden_size: u32,
    vocab_size: u32,
    num_hidden_layers: u32,
    num_attention_heads: u32,
    num_key_value_heads: Option<u32>,
    head_dim: Option<u32>,
    intermediate_size: Option<u32>,
    tie_word_embeddings: Option<bool>,
    sliding_window: Option<u32>,
    use_sliding_window: Option<bool>,
    layer_types: Option<Vec<String>>,
    quantization_config: Option<Quantization>,
    // Experts.
    num_local_experts: Option<u32>,
    num_experts: Option<u32>,
    n_routed_experts: Option<u32>,
    num_experts_per_tok: Option<u32>,
    moe_intermediate_size: Option<u32>,
    n_shared_experts: Option<u32>,
    shared_expert_intermediate_size: Option<u32>,
    first_k_dense_replace: Option<u32>,
    decoder_sparse_step: Option<u32>,
    mlp_only_layers: Option<Vec<u32>>,
    // Latent attention.
    q_lora_rank: Option<u32>,
    kv_lora_rank: Option<u32>,
    qk_nope_head_dim: Option<u32>,
    qk_rope_head_dim: Option<u32>,
    v_head_dim: Option<u32>,
    // Jamba.
    attn_layer_period: Option<u32>,
    attn_layer_offset: Option<u32>,
    expert_layer_period: Option<u32>,
    expert_layer_offset: Option<u32>,
    mamba_d_state: Option<u32>,
    mamba_d_conv: Option<u32>,
    mamba_expand: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Quantization {
    quant_method: String,
    bits: Option<u32>,
}

/// `model_type`s that are understood.
const FAMILIES: &str = "llama, mistral, qwen2, qwen3, gemma, mixtral, qwen2_moe, qwen3_moe, deepseek_v2, deepseek_v3, \
                        kimi_k2, jamba";

/// The model that a `config.json`'s text describes; it is named `place`, as errors name the file.
///
/// # Errors
/// [`RooflineError::Invalid`] if a key is missing, or the model is of a family whose shape is not known here.
pub fn model_of_config(place: &str, text: &str) -> Result<Model, RooflineError> {
    let config = serde_json::from_str(text);
    let config: Config = config.map_err(|e| RooflineError::invalid(place, e.to_string()))?;
    let config = &config;
    ConfigReader { place, config }.model()
}

/// Bounds of a configuration, each well above any model's: the largest have some 130 layers, 65,536 wide inner networks,
/// 262,144 words, 128 heads, 512 experts and 5 MB of KV per token.
const MOST_LAYERS: u32 = 10_000;
const WIDEST: u32 = 1 << 24;
const MOST_HEADS: u32 = 1 << 16;
const MOST_EXPERTS: u32 = 1 << 16;
const MOST_SHARED_EXPERTS: u32 = 1 << 7;
const MOST_EXPANDED: u32 = 1 << 7;
const MOST_KV_BYTES: u64 = 1 << 28;
const MOST_STATE_BYTES: u64 = 1 << 44;

struct ConfigReader<'a> {
    place: &'a str,
    config: &'a Config,
}

impl ConfigReader<'_> {
    fn model(&self) -> Result<Model, RooflineError> {
        let config = self.config;
        self.check_sizes()?;
        self.check_bounds()?;
        let mut groups: Vec<LayerGroup> = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let (mixer, mlp) = (self.mixer(layer)?, self.mlp(layer)?);
            match groups.iter_mut().find(|g| g.mixer == mixer && g.mlp == mlp) {
                Some(group) => group.layers += 1,
                None => groups.push(LayerGroup {
                    layers: 1,
                    mixer,
                    mlp,
                }),
            }
        }
        let model = Model {
            name: self.place.to_owned(),
            parameters: 0.0,
            active_parameters: 0.0,
            hidden: config.hidden_size,
            vocab: config.vocab_size,
            tied_embeddings: config
                .tie_word_embeddings
                .unwrap_or(config.model_type == "gemma"),
            weight_precision: self.weight_precision()?,
            kv_precision: Precision::Fp16,
            recurrent_bytes: None,
            groups,
        };
        let model = model.counted();
        self.check_memory(&model)?;
        Ok(model)
    }

    /// Every number lies where models can be, so that no product of a few of them leaves the range of its type.
    fn check_bounds(&self) -> Result<(), RooflineError> {
        let mut bounds = bounds(self.config).into_iter();
        let outside = bounds.find(|(_, value, least, most)| {
            value.is_some_and(|value| !(*least..=*most).contains(&value))
        });
        match outside {
            Some((key, Some(value), least, most)) => Err(RooflineError::invalid(
                self.place,
                format!("{key} is {value}; expected {least} to {most}"),
            )),
            _ => Ok(()),
        }
    }

    /// What a cache holds of the model stays countable: blocks of some thousand tokens, by the million.
    fn check_memory(&self, model: &Model) -> Result<(), RooflineError> {
        let kv_bytes = model.kv_bytes_per_token();
        let state_bytes = model.state_bytes();
        let (what, bytes, most) = match kv_bytes > MOST_KV_BYTES {
            true => ("KV of a token", kv_bytes, MOST_KV_BYTES),
            false => ("a state", state_bytes, MOST_STATE_BYTES),
        };
        if bytes <= most {
            return Ok(());
        }
        let problem = format!("{what} has {bytes} bytes; expected at most {most}");
        Err(RooflineError::invalid(self.place, problem))
    }

    /// A size of 0 would price layers at nothing.
    fn check_sizes(&self) -> Result<(), RooflineError> {
        let config = self.config;
        let sizes = [
            ("hidden_size", Some(config.hidden_size)),
            ("vocab_size", Some(config.vocab_size)),
            ("num_hidden_layers", Some(config.num_hidden_layers)),
            ("num_attention_heads", Some(config.num_attention_heads)),
            ("num_key_value_heads", config.num_key_value_heads),
            ("head_dim", config.head_dim),
        ];
        match sizes.iter().find(|(_, size)| *size == Some(0)) {
            None => Ok(()),
            Some((key, _)) => Err(RooflineError::invalid(self.place, format!("{key} is 0"))),
        }
    }

    fn mixer(&self, layer: u32) -> Result<Mixer, RooflineError> {
        match self.config.model_type.as_str() {
            "llama" | "mistral" | "qwen2" | "qwen3" | "gemma" | "mixtral" | "qwen2_moe"
            | "qwen3_moe" => self.attention(self.window(layer)),
            "deepseek_v2" | "deepseek_v3" | "kimi_k2" => self.latent_attention(),
            "jamba" if self.every(layer, "attn_layer")? => self.attention(None),
            "jamba" => self.state_space(),
            other => {
                let problem = format!(
                    "the layers of model_type \"{other}\" are not known; known are {FAMILIES}"
                );
                Err(RooflineError::invalid(self.place, problem))
            }
        }
    }

    fn attention(&self, window: Option<u32>) -> Result<Mixer, RooflineError> {
        let config = self.config;
        let heads = config.num_attention_heads;
        Ok(Mixer::Attention {
            heads,
            kv_heads: config.num_key_value_heads.unwrap_or(heads),
            head_dim: config.head_dim.unwrap_or(config.hidden_size / heads),
            window,
        })
    }

    /// Qwen states a window that it does not use unless it says so; where layers are listed, the list decides.
    fn window(&self, layer: u32) -> Option<u32> {
        let config = self.config;
        let listed = config
            .layer_types
            .as_ref()
            .and_then(|types| types.get(layer as usize));
        let used = match listed {
            Some(kind) => kind == "sliding_attention",
            None => config
                .use_sliding_window
                .unwrap_or(!config.model_type.starts_with("qwen")),
        };
        config.sliding_window.filter(|_| used)
    }

    fn latent_attention(&self) -> Result<Mixer, RooflineError> {
        let config = self.config;
        Ok(Mixer::Mla(LatentAttention {
            heads: config.num_attention_heads,
            q_lora_rank: config.q_lora_rank,
            kv_lora_rank: self.need(config.kv_lora_rank, "kv_lora_rank")?,
            qk_nope_head_dim: self.need(config.qk_nope_head_dim, "qk_nope_head_dim")?,
            qk_rope_head_dim: self.need(config.qk_rope_head_dim, "qk_rope_head_dim")?,
            v_head_dim: self.need(config.v_head_dim, "v_head_dim")?,
        }))
    }

    fn state_space(&self) -> Result<Mixer, RooflineError> {
        let config = self.config;
        Ok(Mixer::Ssm {
            inner: config.hidden_size * config.mamba_expand.unwrap_or(2),
            state: self.need(config.mamba_d_state, "mamba_d_state")?,
            conv: self.need(config.mamba_d_conv, "mamba_d_conv")?,
            // Mamba's own default, and Jamba's value.
            dt_rank: config.hidden_size.div_ceil(16),
        })
    }

    fn mlp(&self, layer: u32) -> Result<Mlp, RooflineError> {
        let config = self.config;
        let sparse = match config.model_type.as_str() {
            "mixtral" => true,
            "qwen2_moe" | "qwen3_moe" => {
                let listed = config.mlp_only_layers.as_ref();
                let dense = listed.is_some_and(|layers| layers.contains(&layer));
                !dense && (layer + 1).is_multiple_of(config.decoder_sparse_step.unwrap_or(1).max(1))
            }
            "deepseek_v2" | "deepseek_v3" | "kimi_k2" => {
                layer >= config.first_k_dense_replace.unwrap_or(0)
            }
            "jamba" => self.every(layer, "expert_layer")?,
            _ => false,
        };
        if sparse { self.experts() } else { self.dense() }
    }

    fn dense(&self) -> Result<Mlp, RooflineError> {
        let intermediate = self.need(self.config.intermediate_size, "intermediate_size")?;
        Ok(Mlp::Dense {
            intermediate,
            gated: true,
        })
    }

    fn experts(&self) -> Result<Mlp, RooflineError> {
        let config = self.config;
        let experts = config
            .n_routed_experts
            .or(config.num_local_experts)
            .or(config.num_experts);
        let intermediate = config.moe_intermediate_size.or(config.intermediate_size);
        let intermediate = self.need(intermediate, "moe_intermediate_size")?;
        // At most 2^7 x 2^24.
        let shared = config.n_shared_experts.map(|count| count * intermediate);
        let experts = self.need(
            experts,
            "n_routed_experts, num_local_experts or num_experts",
        )?;
        let active = self.need(config.num_experts_per_tok, "num_experts_per_tok")?;
        if active > experts {
            let problem =
                format!("num_experts_per_tok is {active}, but there are {experts} experts");
            return Err(RooflineError::invalid(self.place, problem));
        }
        Ok(Mlp::Moe {
            experts,
            active,
            intermediate,
            shared: shared
                .or(config.shared_expert_intermediate_size)
                .unwrap_or(0),
        })
    }

    /// Whether Jamba puts such a layer at that place.
    fn every(&self, layer: u32, what: &str) -> Result<bool, RooflineError> {
        let config = self.config;
        let (period, offset) = if what == "attn_layer" {
            (config.attn_layer_period, config.attn_layer_offset)
        } else {
            (config.expert_layer_period, config.expert_layer_offset)
        };
        let period = self.need(period, &format!("{what}_period"))?.max(1);
        let offset = self.need(offset, &format!("{what}_offset"))?;
        Ok(layer % period == offset % period)
    }

    fn weight_precision(&self) -> Result<Precision, RooflineError> {
        let Some(quantization) = &self.config.quantization_config else {
            return Ok(Precision::Fp16);
        };
        match (quantization.quant_method.as_str(), quantization.bits) {
            ("fp8", _) | (_, Some(8)) => Ok(Precision::Fp8),
            (_, Some(4)) => Ok(Precision::Int4),
            (method, _) => {
                let problem = format!(
                    "quantization \"{method}\" is not fp8, and states neither 4 nor 8 bits"
                );
                Err(RooflineError::invalid(self.place, problem))
            }
        }
    }

    fn need(&self, value: Option<u32>, key: &str) -> Result<u32, RooflineError> {
        value
            .filter(|v| *v > 0 || key.ends_with("offset"))
            .ok_or_else(|| {
                let family = &self.config.model_type;
                RooflineError::invalid(
                    self.place,
                    format!("a {family} needs {key}, a number above 0"),
                )
            })
    }
}

/// Per numeric field its value, where there is one, and the least and the most that it can be.
fn bounds(config: &Config) -> Vec<(&'static str, Option<u32>, u32, u32)> {
    macro_rules! within {
        ($($field:ident: $least:expr, $most:expr;)*) => {
            vec![$((stringify!($field), Option::<u32>::from(config.$field), $least, $most)),*]
        };
    }
    within! {
        hidden_size: 1, WIDEST;
        vocab_size: 1, WIDEST;
        num_hidden_layers: 1, MOST_LAYERS;
        num_attention_heads: 1, MOST_HEADS;
        num_key_value_heads: 1, config.num_attention_heads;
        head_dim: 1, MOST_HEADS;
        intermediate_size: 0, WIDEST;
        sliding_window: 1, u32::MAX;
        num_local_experts: 0, MOST_EXPERTS;
        num_experts: 0, MOST_EXPERTS;
        n_routed_experts: 0, MOST_EXPERTS;
        num_experts_per_tok: 0, MOST_EXPERTS;
        moe_intermediate_size: 0, WIDEST;
        n_shared_experts: 0, MOST_SHARED_EXPERTS;
        shared_expert_intermediate_size: 0, WIDEST;
        q_lora_rank: 0, MOST_HEADS;
        kv_lora_rank: 0, MOST_HEADS;
        qk_nope_head_dim: 0, MOST_HEADS;
        qk_rope_head_dim: 0, MOST_HEADS;
        v_head_dim: 0, MOST_HEADS;
        mamba_d_state: 0, MOST_HEADS;
        mamba_d_conv: 0, MOST_HEADS;
        mamba_expand: 1, MOST_EXPANDED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Model, RooflineError> {
        model_of_config("config.json", json)
    }

    /// The presets were typed in by hand from the same facts, so the two check each other.
    fn same_as_preset(json: &str, preset: &str) {
        let model = read(json).unwrap();
        let mut preset = Model::named(preset).unwrap();
        preset.name.clone_from(&model.name);
        let key = |g: &LayerGroup| format!("{g:?}");
        let sorted = |m: &Model| {
            let mut groups = m.groups.clone();
            groups.sort_by_key(key);
            groups
        };
        assert_eq!(sorted(&model), sorted(&preset));
        assert_eq!(model.parameters, preset.parameters);
    }

    #[test]
    fn a_llama() {
        same_as_preset(
            r#"{"model_type": "llama", "hidden_size": 8192, "vocab_size": 128256, "num_hidden_layers": 80,
                "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672,
                "rope_theta": 500000.0, "tie_word_embeddings": false}"#,
            "llama-3-70b",
        );
    }

    #[test]
    fn a_mixture_of_experts() {
        same_as_preset(
            r#"{"model_type": "mixtral", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null}"#,
            "mixtral-8x7b",
        );
    }

    #[test]
    fn layers_listed_as_dense_have_no_experts() {
        let model = read(
            r#"{"model_type": "qwen3_moe", "hidden_size": 64, "vocab_size": 10, "num_hidden_layers": 4,
                "num_attention_heads": 4, "intermediate_size": 128, "moe_intermediate_size": 16, "num_experts": 8,
                "num_experts_per_tok": 2, "mlp_only_layers": [0, 2]}"#,
        );
        let layers = |dense: bool| {
            let groups = model.as_ref().unwrap().groups.iter();
            let of = groups.filter(|g| matches!(g.mlp, Mlp::Dense { .. }) == dense);
            of.map(|g| g.layers).sum::<u32>()
        };
        assert_eq!((layers(true), layers(false)), (2, 2));
    }

    #[test]
    fn a_windowed_model() {
        same_as_preset(
            r#"{"model_type": "mistral", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "sliding_window": 4096}"#,
            "mistral-7b",
        );
    }

    #[test]
    fn latent_attention() {
        same_as_preset(
            r#"{"model_type": "deepseek_v3", "hidden_size": 7168, "vocab_size": 129280, "num_hidden_layers": 61,
                "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
                "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1,
                "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
                "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
                "quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}}"#,
            "deepseek-v3",
        );
    }

    #[test]
    fn a_hybrid() {
        same_as_preset(
            r#"{"model_type": "jamba", "hidden_size": 4096, "vocab_size": 65536, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "num_experts": 16, "num_experts_per_tok": 2, "attn_layer_period": 8, "attn_layer_offset": 4,
                "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 16, "mamba_d_conv": 4,
                "mamba_expand": 2, "mamba_dt_rank": 256}"#,
            "jamba-v0.1",
        );
    }

    #[test]
    fn configs_that_no_model_has_are_refused() {
        let mixtral = |key: &str, value: u64| {
            let mut config = serde_json::json!({
                "model_type": "mixtral", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 32,
                "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                "num_local_experts": 8, "num_experts_per_tok": 2
            });
            config[key] = value.into();
            read(&config.to_string()).map_err(|fault| fault.to_string())
        };
        mixtral("num_hidden_layers", 32).unwrap();
        for (key, value, expected) in [
            (
                "num_hidden_layers",
                1 << 31,
                "num_hidden_layers is 2147483648; expected 1 to 10000",
            ),
            ("num_hidden_layers", 0, "is 0"),
            ("hidden_size", 0, "is 0"),
            ("num_key_value_heads", 33, "expected 1 to 32"),
            ("num_key_value_heads", 0, "is 0"),
            (
                "num_experts_per_tok",
                65_535,
                "num_experts_per_tok is 65535, but there are 8 experts",
            ),
            ("n_shared_experts", 1 << 20, "expected 0 to 128"),
            ("head_dim", u64::from(u32::MAX), "expected 1 to 65536"),
            ("sliding_window", 0, "expected 1 to"),
        ] {
            let fault = mixtral(key, value).unwrap_err();
            assert!(fault.contains(expected), "{key} {value}: {fault}");
        }
        let heavy = r#"{"model_type": "llama", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 9999,
            "num_attention_heads": 65536, "head_dim": 65536, "intermediate_size": 14336}"#;
        let fault = read(heavy).unwrap_err().to_string();
        assert!(fault.contains("KV of a token has"), "{fault}");
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let base = r#""hidden_size": 64, "vocab_size": 10, "num_hidden_layers": 1, "num_attention_heads": 4"#;
        let error = |extra: &str| {
            read(&format!("{{{base}, {extra}}}"))
                .unwrap_err()
                .to_string()
        };
        assert!(error(r#""model_type": "rwkv""#).contains("model_type \"rwkv\" are not known"));
        assert!(error(r#""model_type": "llama""#).contains("needs intermediate_size"));
        let no_kv = r#""model_type": "llama", "intermediate_size": 9, "num_key_value_heads": 0"#;
        assert!(error(no_kv).contains("num_key_value_heads is 0"));
        let odd = r#""model_type": "llama", "intermediate_size": 9, "quantization_config": {"quant_method": "x"}"#;
        assert!(error(odd).contains("quantization \"x\""));
    }
}
