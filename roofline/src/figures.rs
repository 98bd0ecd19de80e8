//! The course's published figures, each beside what this crate computes for it.
//!
//! Printed values, formulas and tolerances are the facts of `figures.toml`; every computed value is derived here from
//! the reference model and GPU through the crate's own functions. Figures named `chain.*` and `audit.*` start from the
//! course's *printed* times instead, because that is how the course chains them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cost::{Attention, ConstantUtilisation};
use crate::fetch::{break_even_bandwidth, fetch_s};
use policy_api::PrefillCost;

use crate::{Gpu, Model, RooflineError};

/// What the printed tolerance 0 means: equal up to rounding of doubles.
const EXACT: f64 = 1e-9;

/// One published figure and what the crate makes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Dotted name.
    pub id: String,
    /// The published value.
    pub printed: f64,
    /// The value derived here, in the same unit.
    pub computed: f64,
    /// Unit of both.
    pub unit: String,
    /// How it is derived.
    pub formula: String,
    /// Largest `|computed - printed| / printed` that still is the same figure, from the printed rounding.
    pub tolerance: f64,
    /// Within tolerance.
    pub ok: bool,
}

#[derive(Deserialize)]
struct Printed {
    id: String,
    printed: f64,
    unit: String,
    formula: String,
    tolerance: f64,
}

#[derive(Deserialize)]
struct File {
    figure: Vec<Printed>,
}

/// All figures in the course's order.
///
/// # Errors
/// [`RooflineError::Invalid`] if the compiled-in table is not well formed or lists a figure that nothing computes.
pub fn figures() -> Result<Vec<Figure>, RooflineError> {
    let file: File = toml::from_str(include_str!("../data/figures.toml"))
        .map_err(|e| RooflineError::invalid("figures.toml", e.to_string()))?;
    let computed = computed(&file.figure)?;
    file.figure
        .into_iter()
        .map(|printed| compare(printed, &computed))
        .collect()
}

fn compare(fact: Printed, computed: &BTreeMap<&str, f64>) -> Result<Figure, RooflineError> {
    let Printed {
        id,
        printed,
        unit,
        formula,
        tolerance,
    } = fact;
    let computed = *computed.get(id.as_str()).ok_or_else(|| {
        RooflineError::invalid(
            "figures.toml",
            format!("figure {id} is not computed anywhere"),
        )
    })?;
    let ok = (computed - printed).abs() <= tolerance.max(EXACT) * printed.abs();
    Ok(Figure {
        id,
        printed,
        computed,
        unit,
        formula,
        tolerance,
        ok,
    })
}

type Values = Vec<(&'static str, f64)>;

fn computed(printed: &[Printed]) -> Result<BTreeMap<&'static str, f64>, RooflineError> {
    let reference = Reference::new("course-7b")?;
    let grouped = Reference::new("course-7b-gqa8")?;
    let large = Reference::new("course-13b")?;
    let printed = |id: &str| {
        printed
            .iter()
            .find(|p| p.id == id)
            .map(|p| p.printed)
            .ok_or_else(|| {
                RooflineError::invalid("figures.toml", format!("figure {id} is missing"))
            })
    };
    let chain = Chain {
        prefill_none_s: printed("declared.prefill_none")?,
        prefill_perfect_s: printed("declared.prefill_perfect")?,
        tpot_ambient_s: printed("decode.tpot_ambient")? / 1e3,
        tpot_expedited_s: printed("decode.tpot_expedited")? / 1e3,
        dead_time_s: printed("chain.dead_time")?,
        config_a_s: printed("chain.config_a")?,
        config_b_s: printed("chain.config_b")?,
        config_c_s: printed("chain.config_c")?,
    };
    let all = [
        ledger(),
        prefill(&reference),
        kv(&reference, &grouped),
        density(&reference),
        fanout(&reference),
        fetch(&reference, &grouped),
        decode(&reference, &grouped),
        chain.values(),
        map_reduce(&grouped),
        repeat(),
        stall(&large),
        chain_of_50(),
    ];
    Ok(all.into_iter().flatten().collect())
}

/// A model on the reference GPU, under the course's cost models.
struct Reference {
    model: Model,
    gpu: Gpu,
    linear: ConstantUtilisation,
    full: ConstantUtilisation,
}

impl Reference {
    fn new(model: &str) -> Result<Self, RooflineError> {
        let (model, gpu) = (Model::named(model)?, Gpu::named("course-h100")?);
        let linear = ConstantUtilisation::new(Attention::Free, &model, &gpu);
        let full = ConstantUtilisation::new(Attention::Full, &model, &gpu);
        Ok(Self {
            model,
            gpu,
            linear,
            full,
        })
    }

    fn linear_s(&self, tokens: u64) -> f64 {
        self.linear.prefill(tokens, 0).seconds
    }

    fn prefill_s(&self, total: u64, cached: u64) -> f64 {
        self.full.prefill(total, cached).seconds
    }

    fn attention_share(&self, tokens: u64) -> f64 {
        self.full.attention_flops(tokens, 0) / self.full.prefill(tokens, 0).flops
    }

    fn kv_bytes(&self, tokens: u64) -> f64 {
        (tokens * self.model.kv_bytes_per_token()) as f64
    }

    /// Seconds per output token of a batch: weights and every sequence's KV stream through once.
    fn tpot_s(&self, sequences: u64, context_tokens: u64) -> f64 {
        let bytes = self.model.weight_bytes() + self.kv_bytes(sequences * context_tokens);
        bytes / self.gpu.memory_bandwidth
    }
}

const GB: f64 = 1e9;
const MS: f64 = 1e-3;

/// Prompt tokens of the course's 20-step agent, step by step.
fn agent_prompts() -> impl Iterator<Item = u64> {
    (0..20).map(|step| 2000 + 300 * step)
}

fn ledger() -> Values {
    let submitted: u64 = agent_prompts().sum();
    // Append-only: the last prompt holds all earlier ones.
    let distinct = agent_prompts().last().unwrap_or(0);
    let (submitted, distinct) = (submitted as f64, distinct as f64);
    let resent = 1.0 - distinct / submitted;
    // Prefill to decode compute is 60 to 1; a hit rate h saves h of the prefill.
    let speedup = |h: f64| 61.0 / (60.0 * (1.0 - h) + 1.0);
    vec![
        ("ledger.submitted_tokens", submitted),
        ("ledger.distinct_tokens", distinct),
        ("ledger.resent_fraction", resent),
        ("ledger.reuse_ceiling", submitted / distinct),
        ("task.speedup_perfect", speedup(resent)),
        ("task.speedup_h30", speedup(0.3)),
        ("task.speedup_h60", speedup(0.6)),
        ("task.speedup_h90", speedup(0.9)),
    ]
}

fn prefill(reference: &Reference) -> Values {
    let ms = |tokens| reference.prefill_s(tokens, 0) / MS;
    vec![
        (
            "prefill.flops_per_token",
            reference.linear.prefill(1, 0).flops,
        ),
        ("prefill.t8192", ms(8192)),
        ("prefill.t4096", ms(4096)),
        ("prefill.t512", ms(512)),
        (
            "prefill.attention_share_8192",
            reference.attention_share(8192),
        ),
        (
            "prefill.attention_share_512",
            reference.attention_share(512),
        ),
        ("prefill.ratio_8192_4096", ms(8192) / ms(4096)),
        ("prefill.step_cold", ms(4850)),
        ("prefill.step_warm", reference.prefill_s(4850, 4465) / MS),
        (
            "prefill.step_cross_attention",
            reference.full.attention_flops(4850, 4465) / 1e12,
        ),
    ]
}

fn kv(reference: &Reference, grouped: &Reference) -> Values {
    let sequences = |r: &Reference| (r.gpu.memory_for_kv(&r.model) / r.kv_bytes(4096)).floor();
    vec![
        ("kv.bytes_per_token_mha", reference.kv_bytes(1)),
        ("kv.bytes_per_token_gqa8", grouped.kv_bytes(1)),
        ("kv.session_mha", reference.kv_bytes(7700) / GB),
        ("kv.session_gqa8", grouped.kv_bytes(7700) / GB),
        ("kv.read_4465", reference.kv_bytes(4465) / GB),
        ("kv.sequences_mha", sequences(reference)),
        ("kv.sequences_gqa8", sequences(grouped)),
    ]
}

fn density(reference: &Reference) -> Values {
    let t = |tokens| reference.prefill_s(tokens, 0);
    let ms_per_gb = |tokens| (t(tokens) / MS) / (reference.kv_bytes(tokens) / GB);
    vec![
        ("density.a", ms_per_gb(8192)),
        ("density.b", ms_per_gb(512)),
        // Recompute per hour: a prefix wanted 0.1 times an hour, against a short one wanted 16 times a second.
        ("trap.evict_a", 0.1 * t(8192) / MS),
        ("trap.evict_b", 16.0 * 3600.0 * t(512)),
    ]
}

fn fanout(reference: &Reference) -> Values {
    let (unshared, shared) = (16 * (8192 + 512), 8192 + 16 * 512);
    vec![
        ("fanout16.tokens_unshared", unshared as f64),
        ("fanout16.tokens_shared", shared as f64),
        ("fanout16.bytes_unshared", reference.kv_bytes(unshared) / GB),
        ("fanout16.bytes_shared", reference.kv_bytes(shared) / GB),
        ("fanout16.factor", unshared as f64 / shared as f64),
    ]
}

fn fetch(reference: &Reference, grouped: &Reference) -> Values {
    let break_even =
        |r: &Reference| break_even_bandwidth(r.kv_bytes(4096), r.prefill_s(4096, 0)) / GB;
    let fetch_ms = |r: &Reference, gb_per_s: f64| fetch_s(r.kv_bytes(4096), gb_per_s * GB) / MS;
    vec![
        ("breakeven.mha", break_even(reference)),
        ("breakeven.gqa8", break_even(grouped)),
        ("fetch.mha_900", fetch_ms(reference, 900.0)),
        ("fetch.mha_50", fetch_ms(reference, 50.0)),
        ("fetch.mha_12_5", fetch_ms(reference, 12.5)),
        ("fetch.gqa8_900", fetch_ms(grouped, 900.0)),
        ("fetch.gqa8_50", fetch_ms(grouped, 50.0)),
        ("fetch.gqa8_12_5", fetch_ms(grouped, 12.5)),
    ]
}

fn decode(reference: &Reference, grouped: &Reference) -> Values {
    vec![
        (
            "declared.prefill_none",
            reference.linear_s(agent_prompts().sum()),
        ),
        (
            "declared.prefill_perfect",
            reference.linear_s(agent_prompts().last().unwrap_or(0)),
        ),
        ("decode.tpot_ambient", reference.tpot_s(29, 4096) / MS),
        ("decode.tpot_expedited", grouped.tpot_s(1, 6125) / MS),
        ("decode.tpot_batched16", grouped.tpot_s(16, 6125) / MS),
        ("decode.tpot_batched64", grouped.tpot_s(64, 6125) / MS),
    ]
}

/// The course's printed times, from which it chains the 20-step agent: 1,600 output tokens, 19 edges between steps.
struct Chain {
    prefill_none_s: f64,
    prefill_perfect_s: f64,
    tpot_ambient_s: f64,
    tpot_expedited_s: f64,
    dead_time_s: f64,
    config_a_s: f64,
    config_b_s: f64,
    config_c_s: f64,
}

impl Chain {
    fn values(&self) -> Values {
        let (ambient_s, expedited_s) =
            (1600.0 * self.tpot_ambient_s, 1600.0 * self.tpot_expedited_s);
        let short_edges_s = 19.0 * (0.010 + 0.050);
        // The audits ask what if the round trips, or decoding at 8 ms a token, had been better all along.
        let decode_8ms_s = 1600.0 * 8.0 * MS;
        let audit = |decode_s: f64, edges_s: f64| {
            (self.prefill_none_s + decode_s + edges_s) / self.config_c_s
        };
        vec![
            ("chain.dead_time", 19.0 * (0.050 + 0.200)),
            (
                "chain.config_a",
                self.prefill_none_s + ambient_s + self.dead_time_s,
            ),
            (
                "chain.config_b",
                self.prefill_perfect_s + ambient_s + self.dead_time_s,
            ),
            ("chain.config_c", self.prefill_perfect_s + expedited_s),
            ("chain.a_over_c", self.config_a_s / self.config_c_s),
            ("chain.b_over_c", self.config_b_s / self.config_c_s),
            (
                "chain.lever_prefix",
                self.prefill_none_s - self.prefill_perfect_s,
            ),
            ("chain.lever_decode", ambient_s - expedited_s),
            ("audit.a", audit(ambient_s, short_edges_s)),
            ("audit.b", audit(decode_8ms_s, self.dead_time_s)),
            ("audit.c", audit(decode_8ms_s, short_edges_s)),
        ]
    }
}

fn map_reduce(grouped: &Reference) -> Values {
    let (map_s, reduce_prefill_s) = (grouped.linear_s(6000), grouped.linear_s(4200));
    let reduce_s = reduce_prefill_s + 400.0 * grouped.tpot_s(1, 4400);
    let serial_s = |maps: u64| maps as f64 * (map_s + 250.0 * grouped.tpot_s(1, 6125));
    let batched_s = |maps: u64| maps as f64 * map_s + 250.0 * grouped.tpot_s(maps, 6125);
    let (serial16_s, batched16_s) = (serial_s(16) + reduce_s, batched_s(16) + reduce_s);
    vec![
        ("mapreduce.map_prefill", map_s),
        ("mapreduce.reduce_prefill", reduce_prefill_s),
        ("mapreduce.reduce", reduce_s),
        ("mapreduce.serial16", serial16_s),
        ("mapreduce.batched16", batched16_s),
        ("mapreduce.speedup16", serial16_s / batched16_s),
        ("mapreduce.serial64", serial_s(64)),
        ("mapreduce.batched64", batched_s(64)),
    ]
}

fn repeat() -> Values {
    let ceiling = |shared: f64| 1.0 / (1.0 - shared);
    // The shared region is missed on 20 % of requests.
    let with_misses = |shared: f64| ceiling(0.8 * shared);
    vec![
        ("repeat.ceiling_03", ceiling(0.03)),
        ("repeat.ceiling_94", ceiling(0.94)),
        ("repeat.ceiling_72", ceiling(0.72)),
        ("repeat.ceiling_99", ceiling(0.99)),
        ("repeat.miss20_03", with_misses(0.03)),
        ("repeat.miss20_94", with_misses(0.94)),
        ("repeat.miss20_72", with_misses(0.72)),
        ("repeat.miss20_99", with_misses(0.99)),
    ]
}

fn stall(large: &Reference) -> Values {
    let session_bytes = large.kv_bytes(16_384);
    let recompute_s = large.linear_s(16_384);
    // A swap moves the session out and in again, over PCIe 5.
    let moved_bytes = 2.0 * session_bytes;
    vec![
        ("stall.kv_per_token_13b", large.kv_bytes(1) / 1e6),
        ("stall.session_13b", session_bytes / GB),
        ("stall.recompute_13b", recompute_s),
        ("stall.swap_13b", fetch_s(moved_bytes, 64.0 * GB)),
        (
            "stall.breakeven_13b",
            break_even_bandwidth(moved_bytes, recompute_s) / GB,
        ),
    ]
}

fn chain_of_50() -> Values {
    let dead_time_s = 49.0 * (0.080 + 0.150);
    vec![
        ("chain50.dead_time", dead_time_s),
        ("chain50.speedup", (12.0 + dead_time_s) / 12.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_comes_out() {
        let figures = figures().unwrap();
        assert_eq!(figures.len(), 82);
        let wrong: Vec<_> = figures.iter().filter(|f| !f.ok).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn nothing_is_computed_that_is_not_published() {
        let facts: File = toml::from_str(include_str!("../data/figures.toml")).unwrap();
        assert_eq!(computed(&facts.figure).unwrap().len(), facts.figure.len());
    }

    #[test]
    fn the_fixture_carries_the_reference_facts() {
        let path = "../../shared/reference/course-figures.toml";
        let Ok(text) = std::fs::read_to_string(path) else {
            println!("skipped: no ../shared");
            return;
        };
        let reference: File = toml::from_str(&text).unwrap();
        let ours: File = toml::from_str(include_str!("../data/figures.toml")).unwrap();
        let facts = |f: File| {
            f.figure
                .into_iter()
                .map(|f| (f.id, f.printed, f.unit, f.tolerance))
        };
        assert!(facts(ours).eq(facts(reference)));
    }
}
