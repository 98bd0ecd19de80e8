//! The `roofline` cost model: kernels of a model on a calibrated GPU, fast enough to be asked twice per request.

use std::sync::Arc;

use params::{Domain, Param};
use policy_api::{PrefillCost, Work};

use crate::calibration::Calibration;
use crate::cost::entry::CostEntry;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::launches::{
    Launch, ModelPart, PassTokens, Prompts, prefill_attention_launches, token_launches,
};
use crate::model::Model;

pub(crate) const ROOFLINE: CostEntry = CostEntry {
    name: "roofline",
    summary: "the sum of a pass's kernels, each with measured efficiencies",
    source: "rooflines per kernel (Williams et al., CACM 2009), fitted to published measurements (`roofline gpus`)",
    idea: "prompts are computed in chunks; each kernel of a chunk takes the time that its fitted form gives for its \
           shape on the GPU, and reads its weights again in every chunk",
    params: &[
        Param {
            name: "gpus",
            default: "1",
            domain: Domain::Count(1, 1024),
            help: "tensor-parallel GPUs",
        },
        Param {
            name: "chunk",
            default: DEFAULT_CHUNK_TOKENS,
            domain: Domain::Count(1, 1 << 20),
            help: "tokens that go through the model at once",
        },
    ],
    build: |model, gpu, params| {
        // Both lie within the bounds above.
        let options = EngineOptions {
            gpus: params.count("gpus").unwrap_or(1) as u32,
            chunk_tokens: params.count("chunk").unwrap_or(1),
        };
        let calibration = Calibration::named(&gpu.calibration)?;
        Ok(Arc::new(RooflineCost::new(
            model,
            gpu,
            calibration,
            options,
        )))
    },
};

/// vLLM's default `max_num_batched_tokens` for large GPUs.
const DEFAULT_CHUNK_TOKENS: &str = "8192";

/// How an engine runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Tensor-parallel GPUs, 1 or more.
    pub gpus: u32,
    /// Prompt tokens that go through the model at once, 1 or more.
    pub chunk_tokens: u64,
}

/// Times are rounded to this fraction of a second (about a picosecond), so that sums of them below two hours are
/// exact and a longer prefix can never cost more by a rounding error.
const TICKS_PER_SECOND: f64 = (1u64 << 40) as f64;

/// Prefill time of one prompt at a time, chunked as engines chunk it.
///
/// Everything but attention depends on the number of tokens in a chunk alone and is looked up. Attention is priced as
/// if the prompt went through at once: chunks read keys again, but that is small beside their arithmetic.
#[derive(Debug)]
pub struct RooflineCost {
    gpu: Gpu,
    calibration: Calibration,
    gpus: u32,
    chunk_tokens: u64,
    /// Cost of the first n tokens of a chunk, for n up to `chunk_tokens`; seconds do not fall.
    tokens: Vec<Work>,
    /// Once per prompt: the head.
    once: Work,
    /// Kernels of attention, with lengths to be filled in.
    attention: Vec<Launch>,
}

impl RooflineCost {
    /// The cost of `model` on `gpu` with the efficiencies of `calibration`.
    pub fn new(model: &Model, gpu: &Gpu, calibration: Calibration, options: EngineOptions) -> Self {
        let gpus = options.gpus.max(1);
        let one = Prompts {
            batch: 1.0,
            new_tokens: 1.0,
            cached_tokens: 0.0,
        };
        let mut cost = Self {
            gpu: gpu.clone(),
            calibration,
            gpus,
            chunk_tokens: options.chunk_tokens.max(1),
            tokens: vec![Work::default()],
            once: Work::default(),
            attention: prefill_attention_launches(model, gpus, one),
        };
        let is_head = |launch: &Launch| launch.part == ModelPart::Head;
        let launches = |rows: u64| {
            let tokens = PassTokens {
                rows: rows as f64,
                sequences: 1.0,
            };
            token_launches(model, gpus, tokens).into_iter()
        };
        cost.once = cost.work(launches(1).filter(is_head));
        for rows in 1..=cost.chunk_tokens {
            let mut work = cost.work(launches(rows).filter(|launch| !is_head(launch)));
            // The powers in the rates are good to the last bit but one; time must not fall by that.
            let before = cost.tokens.last().copied().unwrap_or_default();
            work.seconds = work.seconds.max(before.seconds);
            cost.tokens.push(work);
        }
        cost
    }

    fn work(&self, launches: impl Iterator<Item = Launch>) -> Work {
        let seconds = |kernel: &Kernel| self.calibration.seconds(&self.gpu, kernel);
        let work = launches.fold(Work::default(), |sum, launch| Work {
            seconds: sum.seconds + launch.count * seconds(&launch.kernel),
            flops: sum.flops + launch.count * f64::from(self.gpus) * launch.kernel.flops(),
        });
        Work {
            seconds: (work.seconds * TICKS_PER_SECOND).round() / TICKS_PER_SECOND,
            ..work
        }
    }

    fn attention(&self, new_tokens: u64, cached_tokens: u64) -> Work {
        let (new, cached) = (new_tokens as f64, cached_tokens as f64);
        self.work(self.attention.iter().map(|launch| {
            let mut launch = *launch;
            match &mut launch.kernel {
                Kernel::Prefill(a) => (a.new_tokens, a.cached_tokens) = (new, cached),
                // Latent attention expands its context once a chunk; counted back from the end, so that a longer
                // cached prefix only removes chunks.
                Kernel::Gemm(g) => g.rows = self.expanded_tokens(new_tokens, cached_tokens),
                _ => {}
            }
            launch
        }))
    }

    /// Tokens of context that the chunks of a prompt see, summed.
    fn expanded_tokens(&self, new_tokens: u64, cached_tokens: u64) -> f64 {
        let chunks = new_tokens.div_ceil(self.chunk_tokens) as f64;
        let total = (new_tokens + cached_tokens) as f64;
        chunks * total - self.chunk_tokens as f64 * chunks * (chunks - 1.0) / 2.0
    }
}

impl PrefillCost for RooflineCost {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let new_tokens = total_tokens.saturating_sub(cached_tokens);
        if new_tokens == 0 {
            return Work::default();
        }
        let chunks = (new_tokens / self.chunk_tokens) as f64;
        let whole = self.tokens[self.chunk_tokens as usize];
        let rest = self.tokens[(new_tokens % self.chunk_tokens) as usize];
        let attention = self.attention(new_tokens, cached_tokens);
        let sum = |of: fn(&Work) -> f64| {
            chunks * of(&whole) + of(&rest) + of(&attention) + of(&self.once)
        };
        Work {
            seconds: sum(|w| w.seconds),
            flops: sum(|w| w.flops),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::Deployment;
    use crate::timing::KernelTiming;
    use proptest::prelude::*;
    use std::sync::OnceLock;

    /// One model of each kind, with chunks short enough that prompts have many.
    fn costs() -> &'static [(&'static str, RooflineCost)] {
        static COSTS: OnceLock<Vec<(&str, RooflineCost)>> = OnceLock::new();
        const KINDS: [&str; 7] = [
            "course-7b",
            "llama-3-8b",
            "mistral-7b",
            "mixtral-8x7b",
            "deepseek-v2-lite",
            "jamba-v0.1",
            "hybrid-7b",
        ];
        COSTS.get_or_init(|| {
            let gpu = Gpu::named("h100").unwrap();
            let cost = |name| {
                let model = Model::named(name).unwrap();
                let calibration = Calibration::named("h100").unwrap();
                let options = EngineOptions {
                    gpus: 2,
                    chunk_tokens: 512,
                };
                (name, RooflineCost::new(&model, &gpu, calibration, options))
            };
            KINDS.map(cost).into()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Exactly, not up to rounding: recovered time is never negative.
        #[test]
        fn time_grows_with_the_prompt_and_falls_with_the_hit(
            total in prop_oneof![0u64..3000, 0u64..1_000_000],
            part in 0.0..1.0f64,
            more in prop_oneof![0u64..4, 0u64..2000],
        ) {
            let cached = (total as f64 * part) as u64;
            for (name, cost) in costs() {
                let work = cost.prefill(total, cached);
                prop_assert!(work.seconds.is_finite() && work.flops.is_finite());
                prop_assert!(work.seconds >= 0.0 && work.flops >= 0.0);
                let longer = cost.prefill(total + more, cached);
                prop_assert!(longer.seconds >= work.seconds, "{name} {total}+{more}|{cached}");
                prop_assert!(longer.flops >= work.flops, "{name} {total}+{more}|{cached}");
                let hit = cost.prefill(total, cached + more);
                prop_assert!(hit.seconds <= work.seconds, "{name} {total}|{cached}+{more}");
                prop_assert!(hit.flops <= work.flops, "{name} {total}|{cached}+{more}");
                prop_assert!(cost.prefill(total, 0).seconds >= work.seconds, "{name} {total}|{cached}");
            }
        }
    }

    #[test]
    fn a_prompt_of_one_chunk_is_one_pass() {
        let (model, gpu) = (
            Model::named("llama-3-8b").unwrap(),
            Gpu::named("h100").unwrap(),
        );
        let calibration = Calibration::named("h100").unwrap();
        let timing = KernelTiming::Calibrated(&calibration);
        let deployment = Deployment {
            model: &model,
            gpu: &gpu,
            gpus: 1,
            timing,
        };
        let cost = RooflineCost::new(
            &model,
            &gpu,
            calibration.clone(),
            EngineOptions {
                gpus: 1,
                chunk_tokens: 8192,
            },
        );
        for (cached, new) in [(0, 1), (0, 700), (3000, 385), (100_000, 8192)] {
            let pass = deployment.prefill_time(1, cached, new);
            let work = cost.prefill(cached + new, cached);
            assert!(
                (work.seconds / pass.total.seconds - 1.0).abs() < 1e-6,
                "{new} on {cached}"
            );
            assert!(
                (work.flops / pass.total.flops - 1.0).abs() < 1e-9,
                "{new} on {cached}"
            );
        }
    }

    #[test]
    fn two_chunks_read_the_weights_twice() {
        let (model, gpu) = (
            Model::named("llama-3-8b").unwrap(),
            Gpu::named("h100").unwrap(),
        );
        let options = EngineOptions {
            gpus: 1,
            chunk_tokens: 1024,
        };
        let calibration = Calibration::named("h100").unwrap();
        let cost = RooflineCost::new(&model, &gpu, calibration, options);
        let step = cost.prefill(1025, 0).seconds - cost.prefill(1024, 0).seconds;
        let weight_seconds = model.weight_bytes() / gpu.memory_bandwidth;
        assert!(
            step > 0.8 * weight_seconds && step < 2.0 * weight_seconds,
            "{step} for {weight_seconds}"
        );
    }
}
