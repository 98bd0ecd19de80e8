//! Time, FLOPs and bytes of whole passes, by part.

use serde::Serialize;

use crate::kernel::Kernel;
use crate::plan::{self, Part, Step};
use crate::rates::Roofline;
use crate::{Gpu, Model};

/// What a part of a pass costs one GPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartCost {
    /// The part.
    pub part: Part,
    /// Kernel launches.
    pub launches: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes over the memory or the link that the part is limited by.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
    /// What the datasheet's peaks alone would allow, seconds.
    pub datasheet_s: f64,
}

/// What a pass costs, by part and in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassCost {
    /// The parts that occur, in a fixed order.
    pub parts: Vec<PartCost>,
    /// Seconds.
    pub seconds: f64,
    /// Floating-point operations of one GPU.
    pub flops: f64,
    /// Bytes of one GPU.
    pub bytes: f64,
    /// What the datasheet's peaks alone would allow, seconds.
    pub datasheet_s: f64,
}

/// A model on `gpus` GPUs of one node, and how fast their kernels are.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The model.
    pub model: &'a Model,
    /// The GPU.
    pub gpu: &'a Gpu,
    /// Tensor-parallel GPUs.
    pub gpus: u32,
    /// How kernels turn into seconds.
    pub roofline: Roofline<'a>,
}

impl Setting<'_> {
    /// One pass over `new_tokens` of each of `batch` prompts, of which `cached_tokens` are there; no chunking.
    pub fn prefill_time(&self, batch: u64, cached_tokens: u64, new_tokens: u64) -> PassCost {
        if batch == 0 || new_tokens == 0 {
            return self.cost(&[]);
        }
        let shape = [batch, new_tokens, cached_tokens].map(|n| n as f64);
        let rows = shape[0] * shape[1];
        let mut steps = plan::token_steps(self.model, self.gpus, rows, shape[0]);
        steps.extend(plan::prefill_attention_steps(self.model, self.gpus, shape));
        self.cost(&steps)
    }

    /// One decode step of `batch` sequences that attend to `context_tokens` each.
    pub fn decode_time(&self, batch: u64, context_tokens: u64) -> PassCost {
        if batch == 0 {
            return self.cost(&[]);
        }
        let (batch, context) = (batch as f64, context_tokens as f64);
        let mut steps = plan::token_steps(self.model, self.gpus, batch, batch);
        steps.extend(plan::decode_attention_steps(
            self.model, self.gpus, batch, context,
        ));
        self.cost(&steps)
    }

    /// One step of an engine that batches continuously: chunks of prefill, each `[new, cached]` tokens, together with a
    /// decode step of `sequences` that attend to `context_tokens` each. The weights are read once.
    pub fn step_time(&self, chunks: &[[u64; 2]], sequences: u64, context_tokens: u64) -> PassCost {
        let new_tokens: u64 = chunks.iter().map(|[new, _]| new).sum();
        let rows = (new_tokens + sequences) as f64;
        if rows == 0.0 {
            return self.cost(&[]);
        }
        let ends = chunks.len() as f64 + sequences as f64;
        let mut steps = plan::token_steps(self.model, self.gpus, rows, ends);
        for [new, cached] in chunks {
            let shape = [1.0, *new as f64, *cached as f64];
            steps.extend(plan::prefill_attention_steps(self.model, self.gpus, shape));
        }
        if sequences > 0 {
            let (batch, context) = (sequences as f64, context_tokens as f64);
            steps.extend(plan::decode_attention_steps(
                self.model, self.gpus, batch, context,
            ));
        }
        self.cost(&steps)
    }

    fn cost(&self, steps: &[Step]) -> PassCost {
        let mut parts: Vec<PartCost> = Vec::new();
        for step in steps {
            let cost = self.step_cost(step);
            match parts.iter_mut().find(|p| p.part == cost.part) {
                Some(part) => add(part, &cost),
                None => parts.push(cost),
            }
        }
        parts.sort_by_key(|p| p.part);
        let sum = |of: fn(&PartCost) -> f64| parts.iter().map(of).sum();
        PassCost {
            seconds: sum(|p| p.seconds),
            flops: sum(|p| p.flops),
            bytes: sum(|p| p.bytes),
            datasheet_s: sum(|p| p.datasheet_s),
            parts,
        }
    }

    fn step_cost(&self, step: &Step) -> PartCost {
        let of = |roofline: Roofline, kernel: &Kernel| roofline.seconds(self.gpu, kernel);
        PartCost {
            part: step.part,
            launches: step.count,
            flops: step.count * step.kernel.flops(),
            bytes: step.count * step.kernel.bytes(),
            seconds: step.count * of(self.roofline, &step.kernel),
            datasheet_s: step.count * of(Roofline::Datasheet, &step.kernel),
        }
    }
}

fn add(part: &mut PartCost, more: &PartCost) {
    part.launches += more.launches;
    part.flops += more.flops;
    part.bytes += more.bytes;
    part.seconds += more.seconds;
    part.datasheet_s += more.datasheet_s;
}
