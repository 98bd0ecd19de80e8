use policy_api::{PrefillCost, Work};

use crate::roofline_cost::RooflineCost;
use crate::{Gpu, Model, RooflineError};

/// What it costs to prefill a prompt of which a prefix is cached.
///
/// Implementations are pure: the same arguments give the same bits. Time and FLOPs are finite, never negative, never
/// fall as `total_tokens` grows and never rise as `cached_tokens` grows, so recovered time is never negative.
///
/// A cached prefix longer than the prompt counts as the prompt. Nothing to compute costs nothing.
pub trait CostModel: PrefillCost + Send + Sync {
    /// The name it is chosen by.
    fn name(&self) -> &str;
}

/// The cost models by name, each with what it says in one line. The first is the default.
pub const COST_MODELS: &[(&str, &str)] = &[
    (
        "course",
        "2N per token plus attention over the whole prompt, not halved for causality; constant utilisation",
    ),
    (
        "course-linear",
        "2N per token, no attention; constant utilisation",
    ),
    (
        "causal",
        "2N per token plus attention over each token's own past; constant utilisation",
    ),
    (
        "roofline",
        "kernels with measured efficiencies; roofline(gpus=8,chunk=2048) for tensor parallelism and chunk size",
    ),
];

/// The cost model of that name for a model on a GPU.
///
/// # Errors
/// [`RooflineError::UnknownName`] lists the cost models.
pub fn cost_model(
    name: &str,
    model: &Model,
    gpu: &Gpu,
) -> Result<Box<dyn CostModel>, RooflineError> {
    let attention = match name {
        "course" => Attention::Full,
        "course-linear" => Attention::Free,
        "causal" => Attention::Causal,
        _ if name.split('(').next() == Some("roofline") => {
            return Ok(Box::new(RooflineCost::from_name(name, model, gpu)?));
        }
        _ => {
            let valid = COST_MODELS.iter().map(|(name, _)| *name);
            return Err(RooflineError::unknown("cost model", name, valid, ""));
        }
    };
    Ok(Box::new(ConstantUtilisation::new(attention, model, gpu)))
}

/// What attention costs in a model of constant utilisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    Free,
    /// Every new token against the whole prompt.
    Full,
    /// Every new token against its own past.
    Causal,
}

/// FLOPs over a fixed rate: the course's cost models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstantUtilisation {
    attention: Attention,
    /// 2N.
    flops_per_token: f64,
    /// 4*L*d, of the layers that attend.
    flops_per_pair: f64,
    flops_per_s: f64,
}

impl ConstantUtilisation {
    pub(crate) fn new(attention: Attention, model: &Model, gpu: &Gpu) -> Self {
        Self {
            attention,
            flops_per_token: 2.0 * model.active_parameters,
            flops_per_pair: 4.0 * f64::from(model.attention_layers()) * f64::from(model.hidden),
            flops_per_s: gpu.course_flops(),
        }
    }

    /// FLOPs of attention alone.
    pub(crate) fn attention_flops(&self, total_tokens: u64, cached_tokens: u64) -> f64 {
        let total = total_tokens as f64;
        let cached = cached_tokens.min(total_tokens) as f64;
        match self.attention {
            Attention::Free => 0.0,
            Attention::Full => self.flops_per_pair * (total - cached) * total,
            Attention::Causal => self.flops_per_pair * 0.5 * (total * total - cached * cached),
        }
    }
}

impl CostModel for ConstantUtilisation {
    fn name(&self) -> &str {
        match self.attention {
            Attention::Free => "course-linear",
            Attention::Full => "course",
            Attention::Causal => "causal",
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(name: &str) -> Box<dyn CostModel> {
        let model = Model::named("course-7b").unwrap();
        cost_model(name, &model, &Gpu::named("course-h100").unwrap()).unwrap()
    }

    /// Building one tabulates a chunk, so the property tests share them.
    fn all() -> &'static [Box<dyn CostModel>] {
        static ALL: std::sync::OnceLock<Vec<Box<dyn CostModel>>> = std::sync::OnceLock::new();
        ALL.get_or_init(|| {
            COST_MODELS
                .iter()
                .map(|(name, _)| reference(name))
                .collect()
        })
    }

    #[test]
    fn every_listed_cost_model_exists_under_its_name() {
        for (name, _) in COST_MODELS {
            assert_eq!(reference(name).name(), *name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_valid_ones() {
        let model = Model::named("course-7b").unwrap();
        let gpu = Gpu::named("course-h100").unwrap();
        let Err(error) = cost_model("corse", &model, &gpu) else {
            panic!("accepted")
        };
        assert_eq!(
            error.to_string(),
            "no cost model named \"corse\"; valid names: course, course-linear, causal, roofline"
        );
        assert!(
            Model::named("x")
                .unwrap_err()
                .to_string()
                .contains("course-7b-gqa8")
        );
        assert!(
            Gpu::named("x")
                .unwrap_err()
                .to_string()
                .contains("course-h100")
        );
    }

    #[test]
    fn formulas_at_one_point() {
        let (n, pair, rate) = (6.74e9, 4.0 * 32.0 * 4096.0, 494.5e12);
        let linear = 2.0 * n * 385.0;
        let full = linear + pair * 385.0 * 4850.0;
        let causal = linear + pair / 2.0 * (4850.0 * 4850.0 - 4465.0 * 4465.0);
        for (name, flops) in [
            ("course-linear", linear),
            ("course", full),
            ("causal", causal),
        ] {
            let work = reference(name).prefill(4850, 4465);
            assert_eq!(work.flops, flops, "{name}");
            assert_eq!(work.seconds, flops / rate, "{name}");
        }
    }

    #[test]
    fn nothing_to_compute_costs_nothing() {
        for (name, _) in COST_MODELS {
            let cost = reference(name);
            for (total, cached) in [(0, 0), (7, 7), (7, 9), (0, 3)] {
                assert_eq!(
                    cost.prefill(total, cached),
                    Work::default(),
                    "{name} {total}|{cached}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn time_grows_with_the_prompt_and_falls_with_the_hit(
            total in 0u64..1_000_000, cached in 0u64..1_000_000, more in 0u64..10_000,
        ) {
            let cached = cached.min(total);
            for cost in all() {
                let work = cost.prefill(total, cached);
                prop_assert!(work.seconds.is_finite() && work.seconds >= 0.0);
                prop_assert!(cost.prefill(total + more, cached).seconds >= work.seconds);
                prop_assert!(cost.prefill(total, cached + more).seconds <= work.seconds);
            }
        }
    }
}
