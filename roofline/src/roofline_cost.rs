//! The `roofline` cost model: kernels of a model on a calibrated GPU, fast enough to be asked twice a request.

use policy_api::{PrefillCost, Work};

use crate::cost::CostModel;
use crate::kernel::Kernel;
use crate::plan::{self, Step};
use crate::rates::Roofline;
use crate::{Calibration, Gpu, Model, RooflineError};

/// Tokens an engine feeds through the model at once (vLLM's default `max_num_batched_tokens` for large GPUs).
const DEFAULT_CHUNK_TOKENS: u64 = 8192;

/// Times are rounded to this fraction of a second (about a picosecond), so that sums of them below two hours are
/// exact and a longer prefix can never cost more by a rounding error.
const TICKS_PER_S: f64 = (1u64 << 40) as f64;

/// Prefill time of one prompt at a time, chunked as engines do.
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
    /// Once a prompt: the head.
    once: Work,
    /// Attention steps with lengths to be filled in.
    attention: Vec<Step>,
}

impl RooflineCost {
    /// The cost model `roofline`, or `roofline(gpus=8,chunk=2048)` with other than 1 GPU and chunks of 8,192 tokens.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] for options it does not know; [`RooflineError::UnknownName`] if the GPU's
    /// calibration does not exist.
    pub fn from_name(name: &str, model: &Model, gpu: &Gpu) -> Result<Self, RooflineError> {
        let options = Options::parse(name)?;
        let calibration = Calibration::named(&gpu.calibration)?;
        Ok(Self::new(
            model,
            gpu,
            calibration,
            options.gpus,
            options.chunk_tokens,
        ))
    }

    /// The cost of `model` on `gpus` of `gpu` with the efficiencies of `calibration`, in chunks of `chunk_tokens`.
    pub fn new(
        model: &Model,
        gpu: &Gpu,
        calibration: Calibration,
        gpus: u32,
        chunk_tokens: u64,
    ) -> Self {
        let mut cost = Self {
            gpu: gpu.clone(),
            calibration,
            gpus: gpus.max(1),
            chunk_tokens: chunk_tokens.max(1),
            tokens: vec![Work::default()],
            once: Work::default(),
            attention: plan::prefill_attention_steps(model, gpus.max(1), [1.0, 1.0, 0.0]),
        };
        let head = |step: &Step| step.part == plan::Part::Head;
        let of_one = plan::token_steps(model, cost.gpus, 1.0, 1.0);
        cost.once = cost.work(of_one.into_iter().filter(head));
        for rows in 1..=cost.chunk_tokens {
            let steps = plan::token_steps(model, cost.gpus, rows as f64, 1.0);
            let mut work = cost.work(steps.into_iter().filter(|s| !head(s)));
            // The powers in the rates are good to the last bit but one; time must not fall by that.
            let before = cost.tokens.last().copied().unwrap_or_default();
            work.seconds = work.seconds.max(before.seconds);
            cost.tokens.push(work);
        }
        cost
    }

    fn work(&self, steps: impl Iterator<Item = Step>) -> Work {
        let rates = Roofline::Calibrated(&self.calibration);
        let work = steps.fold(Work::default(), |sum, step| Work {
            seconds: sum.seconds + step.count * rates.seconds(&self.gpu, &step.kernel),
            flops: sum.flops + step.count * f64::from(self.gpus) * step.kernel.flops(),
        });
        Work {
            seconds: (work.seconds * TICKS_PER_S).round() / TICKS_PER_S,
            ..work
        }
    }

    fn attention(&self, new_tokens: u64, cached_tokens: u64) -> Work {
        let (new, cached) = (new_tokens as f64, cached_tokens as f64);
        self.work(self.attention.iter().map(|step| {
            let mut step = *step;
            match &mut step.kernel {
                Kernel::Prefill(a) => (a.new_tokens, a.cached_tokens) = (new, cached),
                // Latent attention expands its context once a chunk; counted back from the end, so that a longer
                // cached prefix only removes chunks.
                Kernel::Gemm(g) => g.rows = self.expanded_tokens(new_tokens, cached_tokens),
                _ => {}
            }
            step
        }))
    }

    /// Tokens of context that the chunks of a prompt see, summed.
    fn expanded_tokens(&self, new_tokens: u64, cached_tokens: u64) -> f64 {
        let chunks = new_tokens.div_ceil(self.chunk_tokens) as f64;
        let total = (new_tokens + cached_tokens) as f64;
        chunks * total - self.chunk_tokens as f64 * chunks * (chunks - 1.0) / 2.0
    }
}

impl CostModel for RooflineCost {
    fn name(&self) -> &str {
        "roofline"
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

struct Options {
    gpus: u32,
    chunk_tokens: u64,
}

impl Options {
    fn parse(name: &str) -> Result<Self, RooflineError> {
        let mut options = Self {
            gpus: 1,
            chunk_tokens: DEFAULT_CHUNK_TOKENS,
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
    use crate::{Roofline, Setting};
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
                (name, RooflineCost::new(&model, &gpu, calibration, 2, 512))
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
        let roofline = Roofline::Calibrated(&calibration);
        let setting = Setting {
            model: &model,
            gpu: &gpu,
            gpus: 1,
            roofline,
        };
        let cost = RooflineCost::from_name("roofline", &model, &gpu).unwrap();
        for (cached, new) in [(0, 1), (0, 700), (3000, 385), (100_000, 8192)] {
            let pass = setting.prefill_time(1, cached, new);
            let work = cost.prefill(cached + new, cached);
            assert!(
                (work.seconds / pass.seconds - 1.0).abs() < 1e-6,
                "{new} on {cached}"
            );
            assert!(
                (work.flops / pass.flops - 1.0).abs() < 1e-9,
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
        let cost = RooflineCost::from_name("roofline(chunk=1024)", &model, &gpu).unwrap();
        let step = cost.prefill(1025, 0).seconds - cost.prefill(1024, 0).seconds;
        let weights_s = model.weight_bytes() / gpu.memory_bandwidth;
        assert!(
            step > 0.8 * weights_s && step < 2.0 * weights_s,
            "{step} for {weights_s}"
        );
    }

    #[test]
    fn options_are_read_or_refused() {
        let read = |name: &str| Options::parse(name).map(|o| (o.gpus, o.chunk_tokens));
        assert_eq!(read("roofline").unwrap(), (1, 8192));
        assert_eq!(read("roofline( gpus=8 , chunk=2048 )").unwrap(), (8, 2048));
        for wrong in [
            "roofline(gpus=0)",
            "roofline(x=1)",
            "roofline(gpus)",
            "roofline(8)",
        ] {
            assert!(
                read(wrong)
                    .unwrap_err()
                    .to_string()
                    .contains("expected roofline(gpus=")
            );
        }
    }
}
