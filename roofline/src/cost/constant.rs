//! Cost models of constant utilisation: FLOPs over a fixed rate.

use std::sync::Arc;

use policy_api::{PrefillCost, Work};

use crate::cost::entry::CostEntry;
use crate::gpu::Gpu;
use crate::model::{AttentionWidth, Model};

pub(crate) const COURSE: CostEntry = CostEntry {
    name: "course",
    summary: "2N per token plus attention over the whole prompt, not halved for causality; constant utilisation",
    source: "the course whose reference model and GPU are the defaults (`roofline figures`)",
    idea: "(2N s + 4 L d s S) / F with s = S - P new tokens of S, and F a constant fraction of the GPU's peak",
    params: &[],
    calibrated: false,
    build: |model, gpu, _, _| {
        let cost = ConstantUtilisation::new(AttentionRule::Full, model, gpu);
        Ok(Arc::new(cost))
    },
};

pub(crate) const COURSE_LINEAR: CostEntry = CostEntry {
    name: "course-linear",
    summary: "2N per token, no attention; constant utilisation",
    source: "the same course, where it sums whole tasks",
    idea: "2N s / F: a token costs the same wherever it is in the prompt",
    params: &[],
    calibrated: false,
    build: |model, gpu, _, _| {
        let cost = ConstantUtilisation::new(AttentionRule::Free, model, gpu);
        Ok(Arc::new(cost))
    },
};

pub(crate) const CAUSAL: CostEntry = CostEntry {
    name: "causal",
    summary: "2N per token plus attention over each token's own past; constant utilisation",
    source: "the arithmetic of causal attention",
    idea: "(2N s + 2 L d (S^2 - P^2)) / F: `course` with the attention that a causal mask leaves",
    params: &[],
    calibrated: false,
    build: |model, gpu, _, _| {
        let cost = ConstantUtilisation::new(AttentionRule::Causal, model, gpu);
        Ok(Arc::new(cost))
    },
};

/// What attention costs in a model of constant utilisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionRule {
    /// Nothing.
    Free,
    /// Every new token against the whole prompt.
    Full,
    /// Every new token against its own past.
    Causal,
}

/// FLOPs over a fixed rate: the course's cost models.
///
/// `L d` is the sum over attention layers of heads times head width; a layer with a window sees no more than that.
#[derive(Debug, Clone)]
pub struct ConstantUtilisation {
    attention: AttentionRule,
    /// 2N.
    flops_per_token: f64,
    /// 4*L*d of the layers that look back equally far, and how far that is.
    flops_per_pair: Vec<AttentionWidth>,
    flops_per_s: f64,
}

impl ConstantUtilisation {
    /// Prices `model` on `gpu` at the GPU's constant utilisation.
    pub fn new(attention: AttentionRule, model: &Model, gpu: &Gpu) -> Self {
        let widths = model
            .attention_widths()
            .into_iter()
            .map(|layers| AttentionWidth {
                width: 4.0 * layers.width,
                ..layers
            });
        Self {
            attention,
            flops_per_token: 2.0 * model.active_parameters,
            flops_per_pair: widths.collect(),
            flops_per_s: gpu.course_flops(),
        }
    }

    /// FLOPs of attention alone.
    pub fn attention_flops(&self, total_tokens: u64, cached_tokens: u64) -> f64 {
        let total = total_tokens as f64;
        let cached = cached_tokens.min(total_tokens) as f64;
        let of_layers = |layers: &AttentionWidth| match self.attention {
            AttentionRule::Free => 0.0,
            AttentionRule::Full => layers.width * (total - cached) * total.min(layers.window),
            AttentionRule::Causal => {
                let pairs = twice_the_pairs(total, layers.window);
                layers.width * 0.5 * (pairs - twice_the_pairs(cached, layers.window))
            }
        };
        self.flops_per_pair.iter().map(of_layers).sum()
    }
}

/// Twice the pairs of `tokens` queries with the keys that each sees: a triangle, and a strip where the window is full.
fn twice_the_pairs(tokens: f64, window: f64) -> f64 {
    let seen = tokens.min(window);
    let beyond = tokens - seen;
    seen * seen
        + if beyond > 0.0 {
            2.0 * beyond * window
        } else {
            0.0
        }
}

impl PrefillCost for ConstantUtilisation {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let new_tokens = total_tokens.saturating_sub(cached_tokens) as f64;
        let flops =
            self.flops_per_token * new_tokens + self.attention_flops(total_tokens, cached_tokens);
        Work {
            seconds: flops / self.flops_per_s,
            flops,
        }
    }
}
