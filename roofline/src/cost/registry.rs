//! The cost models by name.

use std::sync::Arc;

use policy_api::PrefillCost;

use crate::calibration::Calibration;
use crate::cost::constant::{AttentionRule, ConstantUtilisation};
use crate::cost::entry::PricedCost;
use crate::cost::roofline::{EngineOptions, RooflineCost};
use crate::error::RooflineError;
use crate::gpu::Gpu;
use crate::model::Model;

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
pub fn cost_model(name: &str, model: &Model, gpu: &Gpu) -> Result<PricedCost, RooflineError> {
    let attention = match name {
        "course" => AttentionRule::Full,
        "course-linear" => AttentionRule::Free,
        "causal" => AttentionRule::Causal,
        _ if name.split('(').next() == Some("roofline") => {
            let options = Options::parse(name)?;
            let calibration = Calibration::named(&gpu.calibration)?;
            let options = EngineOptions {
                gpus: options.gpus,
                chunk_tokens: options.chunk_tokens,
            };
            let cost = RooflineCost::new(model, gpu, calibration, options);
            return Ok(priced(name, cost));
        }
        _ => {
            let valid = COST_MODELS.iter().map(|(name, _)| *name);
            return Err(RooflineError::unknown("cost model", name, valid));
        }
    };
    Ok(priced(
        name,
        ConstantUtilisation::new(attention, model, gpu),
    ))
}

fn priced(name: &str, cost: impl PrefillCost + Send + Sync + 'static) -> PricedCost {
    PricedCost {
        name: name.to_owned(),
        cost: Arc::new(cost),
    }
}

struct Options {
    gpus: u32,
    chunk_tokens: u64,
}

impl Options {
    fn parse(name: &str) -> Result<Self, RooflineError> {
        let mut options = Self {
            gpus: 1,
            chunk_tokens: 8192,
        };
        let inside = name.strip_prefix("roofline").map(|rest| {
            rest.strip_prefix('(')
                .and_then(|r| r.strip_suffix(')'))
                .unwrap_or(rest)
        });
        let list = inside.unwrap_or(name);
        for option in list.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            let wrong = || {
                let expected = "expected roofline(gpus=COUNT,chunk=TOKENS) with counts from 1 up";
                RooflineError::invalid(format!("cost model \"{name}\""), expected)
            };
            let (key, value) = option.split_once('=').ok_or_else(wrong)?;
            let value: u32 = value
                .trim()
                .parse()
                .ok()
                .filter(|v| *v > 0)
                .ok_or_else(wrong)?;
            match key.trim() {
                "gpus" => options.gpus = value,
                "chunk" => options.chunk_tokens = u64::from(value),
                _ => return Err(wrong()),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{fetch_or_recompute, tiers};
    use policy_api::Work;
    use proptest::prelude::*;

    fn reference(name: &str) -> PricedCost {
        let model = Model::named("course-7b").unwrap();
        cost_model(name, &model, &Gpu::named("course-h100").unwrap()).unwrap()
    }

    /// Building one tabulates a chunk, so the property tests share them.
    fn all() -> &'static [PricedCost] {
        static ALL: std::sync::OnceLock<Vec<PricedCost>> = std::sync::OnceLock::new();
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
            assert_eq!(reference(name).name, *name);
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
            let work = reference(name).cost.prefill(4850, 4465);
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
                    cost.cost.prefill(total, cached),
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
                let work = cost.cost.prefill(total, cached);
                prop_assert!(work.seconds.is_finite() && work.seconds >= 0.0);
                prop_assert!(cost.cost.prefill(total + more, cached).seconds >= work.seconds);
                prop_assert!(cost.cost.prefill(total, cached + more).seconds <= work.seconds);
            }
        }
    }

    /// Its FLOPs for a prompt of `l` tokens: attention 8*l*d^2 + 4*l^2*d, MLP 16*l*d^2, SSM 12*l*d^2 + 16*l*d*n + 10*l*d a layer.
    #[test]
    fn the_hybrids_flops_are_those_of_marconi() {
        let (d, n) = (4096.0, 128.0);
        let model = Model::named("hybrid-7b").unwrap();
        let cost = cost_model("course", &model, &Gpu::named("course-h100").unwrap()).unwrap();
        for tokens in [1_000_u64, 10_000, 100_000] {
            let l = tokens as f64;
            let attention = 8.0 * l * d * d + 4.0 * l * l * d;
            let ssm = 12.0 * l * d * d + 16.0 * l * d * n + 10.0 * l * d;
            let published = 4.0 * attention + 28.0 * 16.0 * l * d * d + 24.0 * ssm;
            let ours = cost.cost.prefill(tokens, 0).flops;
            assert!(
                (ours / published - 1.0).abs() < 0.06,
                "{tokens}: {}",
                ours / published
            );
        }
    }

    #[test]
    fn the_course_loses_to_recompute_over_100_gbit_only() {
        let (model, gpu) = (
            Model::named("course-7b").unwrap(),
            Gpu::named("course-h100").unwrap(),
        );
        let cost = cost_model("course", &model, &gpu).unwrap();
        let fetch = fetch_or_recompute(&model, cost.cost.as_ref(), tiers(&gpu), 4096);
        assert_eq!(fetch.kv_bytes, 4096.0 * 524_288.0);
        let pays: Vec<_> = fetch
            .tiers
            .iter()
            .map(|t| (t.tier.name.as_str(), t.fetch))
            .collect();
        assert_eq!(
            pays,
            [
                ("device memory", true),
                ("peer GPU", true),
                ("host memory", true),
                ("network 400 Gbit/s", true),
                ("network 100 Gbit/s", false),
                ("NVMe", false),
            ]
        );
        // Between the last two bandwidths lies the break-even, about 16.6 GB/s.
        assert!((fetch.break_even_bandwidth / 16.6e9 - 1.0).abs() < 0.005);
    }
}
