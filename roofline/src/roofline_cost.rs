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
