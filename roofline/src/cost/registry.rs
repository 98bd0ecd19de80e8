//! The registry: every cost model that the commands know.

use params::{Call, Param, Params};

use crate::calibration::Calibration;
use crate::cost::constant::{CAUSAL, COURSE, COURSE_LINEAR};
use crate::cost::entry::{CostEntry, PricedCost};
use crate::cost::roofline::ROOFLINE;
use crate::error::RooflineError;
use crate::gpu::Gpu;
use crate::model::Model;

/// All cost models, the default first.
pub const COST_MODELS: &[CostEntry] = &[COURSE, COURSE_LINEAR, CAUSAL, ROOFLINE];

/// The cost model of that name, `name` or `name(key=value,key=value)`, for a model on a GPU.
///
/// # Errors
/// [`RooflineError::UnknownName`] suggests the nearest name and lists all; [`RooflineError::Malformed`] and
/// [`RooflineError::Param`] for parameters that it does not take.
pub fn cost_model(text: &str, model: &Model, gpu: &Gpu) -> Result<PricedCost, RooflineError> {
    calibrated_cost_model(text, model, gpu, None)
}

/// The same with this calibration, unless the name asks for another; without one, with the GPU's own.
///
/// # Errors
/// As [`cost_model`].
pub fn calibrated_cost_model(
    text: &str,
    model: &Model,
    gpu: &Gpu,
    calibration: Option<&Calibration>,
) -> Result<PricedCost, RooflineError> {
    let call = Call::parse(text)?;
    let entry = params::find("cost model", COST_MODELS, |entry| entry.name, call.name)?;
    let params = Params::parse(entry.params, call.arguments);
    let params = params.map_err(|problem| RooflineError::Param {
        cost_model: entry.name,
        problem,
    })?;
    let asked_for = entry.calibrated.then(|| params.text("calibration"));
    let calibration = match (asked_for, calibration) {
        (Some(name), _) if !name.is_empty() => Calibration::named(name)?,
        (_, Some(calibration)) => calibration.clone(),
        (_, None) => Calibration::named(&gpu.calibration)?,
    };
    let used = entry.calibrated.then(|| calibration.name.clone());
    let other = used.as_ref().filter(|name| **name != gpu.calibration);
    Ok(PricedCost {
        name: canonical(entry, &params, other),
        calibration: used,
        cost: (entry.build)(model, gpu, &calibration, &params)?,
    })
}

/// The name, and the parameters that are not at their defaults in the order of their declaration; the calibration comes last,
/// where it is not the GPU's own.
fn canonical(entry: &CostEntry, params: &Params, calibration: Option<&String>) -> String {
    let counts = entry.params.iter().filter(|p| p.name != "calibration");
    let given: Vec<_> = counts
        .filter_map(|param| given(param, params))
        .chain(calibration.map(|name| format!("calibration={name}")))
        .collect();
    if given.is_empty() {
        entry.name.to_owned()
    } else {
        format!("{}({})", entry.name, given.join(","))
    }
}

fn given(param: &Param, params: &Params) -> Option<String> {
    let text = params.text(param.name);
    // 08 is 8.
    let value = text.parse::<u64>();
    let value = value.map_or_else(|_| text.to_owned(), |count| count.to_string());
    (value != param.default).then(|| format!("{}={value}", param.name))
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
                .map(|entry| reference(entry.name))
                .collect()
        })
    }

    #[test]
    fn every_entry_is_described_and_known_by_its_name() {
        for entry in COST_MODELS {
            assert_eq!(reference(entry.name).name, entry.name);
            assert!(![entry.summary, entry.source, entry.idea].contains(&""));
        }
    }

    #[test]
    fn names_tell_configurations_apart() {
        let name = |text| reference(text).name;
        assert_eq!(name("roofline"), "roofline");
        assert_eq!(name("roofline()"), "roofline");
        assert_eq!(name("roofline(chunk=8192,gpus=1)"), "roofline");
        assert_eq!(
            name("roofline( chunk=512 , gpus=08 )"),
            "roofline(gpus=8,chunk=512)"
        );
        assert_eq!(name("Roofline(chunk=512)"), "roofline(chunk=512)");
        let flash = "roofline(gpus=2,calibration=h100-flash2)";
        assert_eq!(name(flash), flash);
        assert_eq!(name("roofline(calibration=h100-vllm)"), "roofline");
    }

    #[test]
    fn a_calibration_is_named_where_it_is_used() {
        let model = Model::named("llama-2-70b").unwrap();
        let gpu = Gpu::named("h100").unwrap();
        let with_engine = Calibration::named("h100-splitwise").unwrap();
        let kernels = Calibration {
            engine: None,
            ..with_engine.clone()
        };
        let price = |text, with| calibrated_cost_model(text, &model, &gpu, with).unwrap();
        let course = price("course", Some(&with_engine));
        assert_eq!((course.name.as_str(), course.calibration), ("course", None));
        let own = price("roofline", None);
        assert_eq!(own.name, "roofline");
        assert_eq!(own.calibration.as_deref(), Some("h100-vllm"));
        let engine = price("roofline(gpus=8)", Some(&with_engine));
        assert_eq!(engine.name, "roofline(gpus=8,calibration=h100-splitwise)");
        // What the engine adds is in what is charged and in what policies see.
        let kernels = price("roofline(gpus=8)", Some(&kernels));
        assert!(engine.cost.prefill(512, 0).seconds > 1.05 * kernels.cost.prefill(512, 0).seconds);
        let leaf = |priced: &PricedCost| priced.cost.marginal(4160, 4096).seconds;
        assert!(leaf(&engine) != leaf(&kernels));
        assert!(leaf(&engine) < engine.cost.prefill(4160, 4096).seconds / 4.0);
    }

    #[test]
    fn parameters_price_as_they_say() {
        let work = |text| reference(text).cost.prefill(50_000, 45_000);
        assert_eq!(work("roofline(chunk=8192)"), work("roofline"));
        assert!(work("roofline(chunk=512)").seconds > work("roofline").seconds);
        assert!(work("roofline(gpus=8)").seconds < work("roofline").seconds);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        let model = Model::named("course-7b").unwrap();
        let gpu = Gpu::named("course-h100").unwrap();
        let message = |text| cost_model(text, &model, &gpu).unwrap_err().to_string();
        let unknown = message("corse");
        assert_eq!(
            unknown,
            "there is no cost model `corse`; did you mean `course`? Valid ones: course, course-linear, causal, roofline"
        );
        assert!(
            message("course(gpus=2)")
                .contains("cost model `course`: there is no parameter `gpus`; it takes none")
        );
        assert!(message("roofline(gpus=0)").contains("`gpus` is a whole number from 1"));
        assert!(message("roofline(x=1)").contains("valid ones: gpus, chunk, calibration"));
        assert!(message("roofline(8)").contains("key=value"));
        assert!(message("roofline(gpus=8").contains("should look like"));
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

    /// FLOPs of attention for 4,096 tokens on 28,672, by hand from the models' published shapes.
    #[test]
    fn attention_is_as_wide_as_the_heads_and_looks_back_no_further_than_the_window() {
        let attention = |model: &str, rule: &str| {
            let model = Model::named(model).unwrap();
            let gpu = Gpu::named("course-h100").unwrap();
            let flops = |rule| {
                let cost = cost_model(rule, &model, &gpu).unwrap();
                cost.cost.prefill(32_768, 28_672).flops
            };
            flops(rule) - flops("course-linear")
        };
        let (new, total) = (4096.0, 32_768.0);
        let causal = (total * total - 28_672.0 * 28_672.0) / 2.0;
        let hand = [
            // 32 layers of 32 heads of 128: the reference model's heads are as wide as its hidden size.
            ("course-7b", "course", 4.0 * 32.0 * 4096.0 * new * total),
            ("course-7b", "causal", 4.0 * 32.0 * 4096.0 * causal),
            // 61 layers of 128 heads with keys of 128 + 64 and values of 128.
            (
                "deepseek-v3",
                "course",
                4.0 * 61.0 * 128.0 * 160.0 * new * total,
            ),
            ("deepseek-v3", "causal", 4.0 * 61.0 * 128.0 * 160.0 * causal),
            // 48 layers of 16 heads of 256, of which 40 look back on 1,024 tokens.
            (
                "gemma-3-12b",
                "course",
                4.0 * 4096.0 * new * (8.0 * total + 40.0 * 1024.0),
            ),
            (
                "gemma-3-12b",
                "causal",
                4.0 * 4096.0 * (8.0 * causal + 40.0 * 1024.0 * new),
            ),
        ];
        for (model, rule, flops) in hand {
            let ours = attention(model, rule);
            assert!(
                (ours / flops - 1.0).abs() < 1e-9,
                "{model} {rule}: {ours} for {flops}"
            );
        }
    }

    #[test]
    fn nothing_to_compute_costs_nothing() {
        for CostEntry { name, .. } in COST_MODELS {
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

    /// Its FLOPs for a prompt of `l` tokens: attention 8*l*d^2 + 4*l^2*d, MLP 16*l*d^2, SSM
    /// 12*l*d^2 + 16*l*d*n + 10*l*d per layer.
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
        let fetch = fetch_or_recompute(&model, &cost, tiers(&gpu), 4096);
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
