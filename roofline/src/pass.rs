//! Time, FLOPs and bytes of whole passes, by part.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;

use crate::gpu::Gpu;
use crate::launches::{
    Decoding, Launch, ModelPart, PassTokens, Prompts, decode_attention_launches,
    prefill_attention_launches, token_launches,
};
use crate::model::Model;
use crate::rates::engine::EnginePasses;
use crate::timing::KernelTiming;

/// What kernels cost one GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LaunchCosts {
    /// Kernel launches.
    pub launches: f64,
    /// Floating-point operations.
    pub flops: f64,
    /// Bytes over the memory or the link that the kernels are limited by.
    pub bytes: f64,
    /// Seconds.
    pub seconds: f64,
    /// What the datasheet's peaks alone would allow, seconds.
    pub datasheet_seconds: f64,
}

impl AddAssign for LaunchCosts {
    fn add_assign(&mut self, more: Self) {
        self.launches += more.launches;
        self.flops += more.flops;
        self.bytes += more.bytes;
        self.seconds += more.seconds;
        self.datasheet_seconds += more.datasheet_seconds;
    }
}

/// What a part of a pass costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartCost {
    /// The part.
    pub part: ModelPart,
    /// Its kernels.
    #[serde(flatten)]
    pub costs: LaunchCosts,
}

/// What a pass costs, by part and in all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PassCost {
    /// The parts that occur, in a fixed order.
    pub parts: Vec<PartCost>,
    /// All of them.
    #[serde(flatten)]
    pub total: LaunchCosts,
}

/// Prompt tokens that a step of an engine computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefillChunk {
    /// Tokens to compute.
    pub new_tokens: u64,
    /// Tokens of the prompt before them.
    pub cached_tokens: u64,
}

/// A model on `gpus` GPUs of one node, and how fast their kernels are.
#[derive(Debug, Clone, Copy)]
pub struct Deployment<'a> {
    /// The model.
    pub model: &'a Model,
    /// The GPU.
    pub gpu: &'a Gpu,
    /// Tensor-parallel GPUs.
    pub gpus: u32,
    /// How kernels turn into seconds.
    pub timing: KernelTiming<'a>,
}

impl Deployment<'_> {
    /// One pass over `new_tokens` of each of `batch` prompts, of which `cached_tokens` are there; no chunking.
    pub fn prefill_time(&self, batch: u64, cached_tokens: u64, new_tokens: u64) -> PassCost {
        if batch == 0 || new_tokens == 0 {
            return self.cost(&[], 0, 0);
        }
        let prompts = Prompts {
            batch: batch as f64,
            new_tokens: new_tokens as f64,
            cached_tokens: cached_tokens as f64,
        };
        let mut launches = self.tokens(prompts.batch * prompts.new_tokens, prompts.batch);
        launches.extend(self.prefill_attention(prompts));
        self.cost(&launches, batch * new_tokens, batch)
    }

    /// One decode step of `sequences` that attend to `context_tokens` each.
    pub fn decode_time(&self, sequences: u64, context_tokens: u64) -> PassCost {
        self.step_time(&[], sequences, context_tokens)
    }

    /// One step of an engine that batches continuously: chunks of prefill, together with a decode step of `sequences`
    /// that attend to `context_tokens` each. The weights are read once.
    pub fn step_time(
        &self,
        chunks: &[PrefillChunk],
        sequences: u64,
        context_tokens: u64,
    ) -> PassCost {
        let new_tokens: u64 = chunks.iter().map(|chunk| chunk.new_tokens).sum();
        let rows = new_tokens + sequences;
        if rows == 0 {
            return self.cost(&[], 0, 0);
        }
        let mut launches = self.tokens(rows as f64, chunks.len() as f64 + sequences as f64);
        for chunk in chunks {
            launches.extend(self.prefill_attention(Prompts {
                batch: 1.0,
                new_tokens: chunk.new_tokens as f64,
                cached_tokens: chunk.cached_tokens as f64,
            }));
        }
        if sequences > 0 {
            let decoding = Decoding {
                sequences: sequences as f64,
                context_tokens: context_tokens as f64,
            };
            launches.extend(decode_attention_launches(self.model, self.gpus, decoding));
        }
        self.cost(&launches, new_tokens, chunks.len() as u64)
    }

    fn tokens(&self, rows: f64, sequences: f64) -> Vec<Launch> {
        token_launches(self.model, self.gpus, PassTokens { rows, sequences })
    }

    fn prefill_attention(&self, of: Prompts) -> Vec<Launch> {
        prefill_attention_launches(self.model, self.gpus, of)
    }

    /// What the launches of one pass cost, which computes `prompt_tokens` of `prompts` prompts.
    fn cost(&self, launches: &[Launch], prompt_tokens: u64, prompts: u64) -> PassCost {
        let mut parts: BTreeMap<ModelPart, LaunchCosts> = BTreeMap::new();
        for launch in launches {
            *parts.entry(launch.part).or_default() += self.launch_costs(launch);
        }
        let mut total = LaunchCosts::default();
        for costs in parts.values() {
            total += *costs;
        }
        if let (Some(engine), false) = (self.timing.engine(), launches.is_empty()) {
            let pass = EnginePasses::one(
                prompt_tokens as f64,
                prompts as f64,
                self.gpus,
                total.seconds,
            );
            let added = LaunchCosts {
                seconds: engine.seconds(&pass) - total.seconds,
                ..LaunchCosts::default()
            };
            total += added;
            parts.insert(ModelPart::Engine, added);
        }
        let parts = parts.into_iter();
        PassCost {
            parts: parts
                .map(|(part, costs)| PartCost { part, costs })
                .collect(),
            total,
        }
    }

    fn launch_costs(&self, launch: &Launch) -> LaunchCosts {
        let Launch { count, kernel, .. } = launch;
        LaunchCosts {
            launches: *count,
            flops: count * kernel.flops(),
            bytes: count * kernel.bytes(),
            seconds: count * self.timing.seconds(self.gpu, kernel),
            datasheet_seconds: count * KernelTiming::Datasheet.seconds(self.gpu, kernel),
        }
    }
}
