//! The `roofline` cost model: kernels of a model on a calibrated GPU, fast enough to be asked twice per request.

use std::sync::Arc;

use params::{Domain, Param};
use policy_api::{PrefillCost, Work};

use crate::calibration::Calibration;
use crate::cost::entry::CostEntry;
use crate::gpu::Gpu;
use crate::kernel::{Gemm, Kernel, PrefillAttention};
use crate::launches::{
    Launch, ModelPart, PassTokens, Prompts, prefill_attention_launches, token_launches,
};
use crate::model::Model;
use crate::rates::engine::{EnginePasses, long_tokens};

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
        Param {
            name: "calibration",
            default: "",
            domain: Domain::Text("a compiled-in calibration"),
            help: "whose efficiencies are used, instead of the GPU's own (`roofline calibrations`)",
        },
    ],
    calibrated: true,
    build: |model, gpu, calibration, params| {
        // Both lie within the bounds above.
        let options = EngineOptions {
            gpus: params.count("gpus").unwrap_or(1) as u32,
            chunk_tokens: params.count("chunk").unwrap_or(1),
        };
        let cost = RooflineCost::new(model, gpu, calibration.clone(), options);
        Ok(Arc::new(cost))
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
/// if the prompt went through at once: chunks read keys again, but that is small beside their arithmetic. What the serving
/// engine adds, where the calibration knows, is added for all passes of a prompt together.
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

    /// Prices the kernels of a prompt as the engine runs them.
    fn seconds_in_engine(&self, new_tokens: u64, kernel_seconds: f64) -> f64 {
        let Some(engine) = &self.calibration.engine else {
            return kernel_seconds;
        };
        engine.seconds(&self.passes(new_tokens, kernel_seconds))
    }

    fn passes(&self, new_tokens: u64, kernel_seconds: f64) -> EnginePasses {
        let whole = (new_tokens / self.chunk_tokens) as f64;
        let rest = (new_tokens % self.chunk_tokens) as f64;
        EnginePasses {
            passes: new_tokens.div_ceil(self.chunk_tokens) as f64,
            prompt_tokens: new_tokens as f64,
            long_tokens: whole * long_tokens(self.chunk_tokens as f64) + long_tokens(rest),
            batched: false,
            gpus: f64::from(self.gpus),
            kernel_seconds,
        }
    }

    /// What the first `tokens` tokens of a prompt that goes on for long add to its passes, on average over where it ends: a whole
    /// chunk's kernels shared among its tokens, and the attention of these tokens. A prefix's price is the difference of two.
    fn share(&self, tokens: u64) -> Work {
        let whole = self.tokens[self.chunk_tokens as usize];
        let (tokens, chunk) = (tokens as f64, self.chunk_tokens as f64);
        let start = Work {
            seconds: whole.seconds * tokens / chunk,
            flops: whole.flops * tokens / chunk,
        };
        let mut work = self.attention.iter().fold(start, |sum, launch| {
            let (seconds, flops) = self.attention_share(&launch.kernel, tokens);
            Work {
                seconds: sum.seconds + launch.count * seconds,
                flops: sum.flops + launch.count * f64::from(self.gpus) * flops,
            }
        });
        if let Some(engine) = &self.calibration.engine {
            let passes = EnginePasses {
                long_tokens: long_tokens(chunk) * tokens / chunk,
                prompt_tokens: tokens,
                ..self.passes(0, work.seconds)
            };
            work.seconds = engine.device_seconds(&passes);
        }
        work.seconds = (work.seconds * TICKS_PER_SECOND).round() / TICKS_PER_SECOND;
        work
    }

    /// Seconds and FLOPs of attention in [`Self::share`].
    fn attention_share(&self, kernel: &Kernel, tokens: f64) -> (f64, f64) {
        match kernel {
            Kernel::Prefill(a) => {
                let rates = &self.calibration.prefill_attention;
                let alone = PrefillAttention {
                    new_tokens: tokens,
                    cached_tokens: 0.0,
                    ..*a
                };
                let seconds = rates.marginal_seconds(&self.gpu, a, tokens);
                (seconds, Kernel::Prefill(alone).flops())
            }
            // Every chunk expands its whole context; chunk ends lie evenly along the prompt.
            Kernel::Gemm(g) => {
                let rows = tokens * tokens / 2.0 / self.chunk_tokens as f64;
                let seconds = rows * self.calibration.gemm.seconds_per_row(&self.gpu, g);
                (seconds, Kernel::Gemm(Gemm { rows, ..*g }).flops())
            }
            _ => (0.0, 0.0),
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
            seconds: self.seconds_in_engine(new_tokens, sum(|w| w.seconds)),
            flops: sum(|w| w.flops),
        }
    }

    fn marginal(&self, end_tokens: u64, start_tokens: u64) -> Work {
        let (end, start) = (self.share(end_tokens), self.share(start_tokens));
        Work {
            seconds: (end.seconds - start.seconds).max(0.0),
            flops: (end.flops - start.flops).max(0.0),
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
                let mut calibration = Calibration::named("h100-vllm").unwrap();
                let options = EngineOptions {
                    gpus: 2,
                    chunk_tokens: 512,
                };
                // An engine's terms must not break the order either.
                if name == "llama-3-8b" {
                    calibration.engine = Calibration::named("h100-splitwise").unwrap().engine;
                }
                (name, RooflineCost::new(&model, &gpu, calibration, options))
            };
            KINDS.map(cost).into()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Exactly; and a stretch costs what its parts cost.
        #[test]
        fn the_price_of_a_leaf_grows_with_it_and_adds_up(
            start in 0u64..200_000, length in 0u64..5000, more in 0u64..3000,
        ) {
            let end = start + length;
            for (name, cost) in costs() {
                let leaf = cost.marginal(end, start);
                prop_assert!(leaf.seconds.is_finite() && leaf.seconds >= 0.0, "{name}");
                let longer = cost.marginal(end + more, start);
                prop_assert!(longer.seconds >= leaf.seconds, "{name} {start}..{end}+{more}");
                prop_assert!(longer.flops >= leaf.flops, "{name} {start}..{end}+{more}");
                let rest = cost.marginal(end + more, end);
                let sum = leaf.seconds + rest.seconds;
                prop_assert!((sum - longer.seconds).abs() <= 1e-9 * longer.seconds + 1e-11, "{name}");
                let shorter = cost.marginal(end, (start + more).min(end));
                prop_assert!(shorter.seconds <= leaf.seconds, "{name} {start}+{more}..{end}");
            }
        }

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

    /// The mean over where the prompt ends of what it is charged more without the leaf, that is over two chunks' ends of
    /// prompts that go on for twenty chunks and more. Up to what whole waves of tiles make of it: how full the last wave is depends
    /// on the prompt's length in steps that this mean does not smooth out.
    #[test]
    fn the_price_of_a_leaf_is_what_losing_it_is_charged() {
        const CHUNK: u64 = 512;
        let mean_charged = |cost: &RooflineCost, start: u64, end: u64| {
            let charged = |total| {
                let (without, with) = (cost.prefill(total, start), cost.prefill(total, end));
                Work {
                    seconds: without.seconds - with.seconds,
                    flops: without.flops - with.flops,
                }
            };
            let totals = end + 20 * CHUNK..end + 22 * CHUNK;
            let sum = totals.map(charged).fold(Work::default(), |sum, w| Work {
                seconds: sum.seconds + w.seconds,
                flops: sum.flops + w.flops,
            });
            let count = (2 * CHUNK) as f64;
            Work {
                seconds: sum.seconds / count,
                flops: sum.flops / count,
            }
        };
        for (name, cost) in costs() {
            for (start, end) in [
                (0, 64),
                (4096, 4160),
                (4096, 4224),
                (3000, 5500),
                (60_000, 60_512),
            ] {
                let (leaf, charged) = (cost.marginal(end, start), mean_charged(cost, start, end));
                let off = [
                    leaf.seconds / charged.seconds - 1.0,
                    leaf.flops / charged.flops - 1.0,
                ];
                // A floor of a pass is in no leaf's price, but a short chunk under it makes losing a leaf cheaper or dearer.
                if cost.calibration.engine.is_some() {
                    continue;
                }
                assert!(
                    off.iter().all(|off| off.abs() < 0.08),
                    "{name} {start}..{end}: {off:?}"
                );
            }
        }
    }

    #[test]
    fn a_prompt_of_one_chunk_is_one_pass() {
        let (model, gpu) = (
            Model::named("llama-3-8b").unwrap(),
            Gpu::named("h100").unwrap(),
        );
        for name in ["h100-vllm", "h100-splitwise"] {
            let calibration = Calibration::named(name).unwrap();
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
        let calibration = Calibration::named("h100-vllm").unwrap();
        let cost = RooflineCost::new(&model, &gpu, calibration, options);
        let step = cost.prefill(1025, 0).seconds - cost.prefill(1024, 0).seconds;
        let weight_seconds = model.weight_bytes() / gpu.memory_bandwidth;
        assert!(
            step > 0.8 * weight_seconds && step < 2.0 * weight_seconds,
            "{step} for {weight_seconds}"
        );
    }
}
