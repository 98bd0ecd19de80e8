//! The course's published figures, each beside what this crate computes for it.
//!
//! Printed values, formulas and tolerances are the facts of `figures.toml`; every computed value is derived here from
//! the reference model and GPU through the crate's own functions. Figures named `chain.*` and `audit.*` start from the
//! course's *printed* times instead, because that is how the course chains them.

use std::collections::BTreeMap;

use roofline::{
    AttentionRule, ConstantUtilisation, Gpu, Model, PrefillCost, RooflineError,
    break_even_bandwidth, fetch_seconds,
};
use serde::{Deserialize, Serialize};

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
struct PrintedFigure {
    id: String,
    printed: f64,
    unit: String,
    formula: String,
    tolerance: f64,
}

#[derive(Deserialize)]
struct FigureFile {
    figure: Vec<PrintedFigure>,
}

/// All figures in the course's order.
///
/// # Errors
/// [`RooflineError::Invalid`] if the compiled-in table is not well formed or lists a figure that nothing computes.
pub fn figures() -> Result<Vec<Figure>, RooflineError> {
    let file: FigureFile = toml::from_str(include_str!("../data/figures.toml"))
        .map_err(|e| RooflineError::invalid("figures.toml", e.to_string()))?;
    let computed = computed(&file.figure)?;
    file.figure
        .into_iter()
        .map(|printed| compare(printed, &computed))
        .collect()
}

fn compare(fact: PrintedFigure, computed: &BTreeMap<&str, f64>) -> Result<Figure, RooflineError> {
    let PrintedFigure {
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

type ComputedFigures = Vec<(&'static str, f64)>;

fn computed(printed: &[PrintedFigure]) -> Result<BTreeMap<&'static str, f64>, RooflineError> {
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
    let chain = PrintedTimes {
        prefill_none_seconds: printed("declared.prefill_none")?,
        prefill_perfect_seconds: printed("declared.prefill_perfect")?,
        tpot_ambient_seconds: printed("decode.tpot_ambient")? / 1e3,
        tpot_expedited_seconds: printed("decode.tpot_expedited")? / 1e3,
        dead_time_seconds: printed("chain.dead_time")?,
        config_a_seconds: printed("chain.config_a")?,
        config_b_seconds: printed("chain.config_b")?,
        config_c_seconds: printed("chain.config_c")?,
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
        let linear = ConstantUtilisation::new(AttentionRule::Free, &model, &gpu);
        let full = ConstantUtilisation::new(AttentionRule::Full, &model, &gpu);
        Ok(Self {
            model,
            gpu,
            linear,
            full,
        })
    }

    fn linear_seconds(&self, tokens: u64) -> f64 {
        self.linear.prefill(tokens, 0).seconds
    }

    fn prefill_seconds(&self, total: u64, cached: u64) -> f64 {
        self.full.prefill(total, cached).seconds
    }

    fn attention_share(&self, tokens: u64) -> f64 {
        self.full.attention_flops(tokens, 0) / self.full.prefill(tokens, 0).flops
    }

    fn kv_bytes(&self, tokens: u64) -> f64 {
        (tokens * self.model.kv_bytes_per_token()) as f64
    }

    /// Seconds per output token of a batch: weights and every sequence's KV stream through once.
    fn tpot_seconds(&self, sequences: u64, context_tokens: u64) -> f64 {
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

fn ledger() -> ComputedFigures {
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

fn prefill(reference: &Reference) -> ComputedFigures {
    let ms = |tokens| reference.prefill_seconds(tokens, 0) / MS;
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
        (
            "prefill.step_warm",
            reference.prefill_seconds(4850, 4465) / MS,
        ),
        (
            "prefill.step_cross_attention",
            reference.full.attention_flops(4850, 4465) / 1e12,
        ),
    ]
}

fn kv(reference: &Reference, grouped: &Reference) -> ComputedFigures {
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

fn density(reference: &Reference) -> ComputedFigures {
    let t = |tokens| reference.prefill_seconds(tokens, 0);
    let ms_per_gb = |tokens| (t(tokens) / MS) / (reference.kv_bytes(tokens) / GB);
    vec![
        ("density.a", ms_per_gb(8192)),
        ("density.b", ms_per_gb(512)),
        // Recompute per hour: a prefix reused 0.1 times per hour, against a short one reused 16 times per second.
        ("trap.evict_a", 0.1 * t(8192) / MS),
        ("trap.evict_b", 16.0 * 3600.0 * t(512)),
    ]
}

fn fanout(reference: &Reference) -> ComputedFigures {
    let (unshared, shared) = (16 * (8192 + 512), 8192 + 16 * 512);
    vec![
        ("fanout16.tokens_unshared", unshared as f64),
        ("fanout16.tokens_shared", shared as f64),
        ("fanout16.bytes_unshared", reference.kv_bytes(unshared) / GB),
        ("fanout16.bytes_shared", reference.kv_bytes(shared) / GB),
        ("fanout16.factor", unshared as f64 / shared as f64),
    ]
}

fn fetch(reference: &Reference, grouped: &Reference) -> ComputedFigures {
    let break_even =
        |r: &Reference| break_even_bandwidth(r.kv_bytes(4096), r.prefill_seconds(4096, 0)) / GB;
    let fetch_ms =
        |r: &Reference, gb_per_s: f64| fetch_seconds(r.kv_bytes(4096), gb_per_s * GB) / MS;
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

fn decode(reference: &Reference, grouped: &Reference) -> ComputedFigures {
    vec![
        (
            "declared.prefill_none",
            reference.linear_seconds(agent_prompts().sum()),
        ),
        (
            "declared.prefill_perfect",
            reference.linear_seconds(agent_prompts().last().unwrap_or(0)),
        ),
        ("decode.tpot_ambient", reference.tpot_seconds(29, 4096) / MS),
        ("decode.tpot_expedited", grouped.tpot_seconds(1, 6125) / MS),
        ("decode.tpot_batched16", grouped.tpot_seconds(16, 6125) / MS),
        ("decode.tpot_batched64", grouped.tpot_seconds(64, 6125) / MS),
    ]
}

/// The course's printed times, from which it chains the 20-step agent: 1,600 output tokens, 19 edges between steps.
struct PrintedTimes {
    prefill_none_seconds: f64,
    prefill_perfect_seconds: f64,
    tpot_ambient_seconds: f64,
    tpot_expedited_seconds: f64,
    dead_time_seconds: f64,
    config_a_seconds: f64,
    config_b_seconds: f64,
    config_c_seconds: f64,
}

impl PrintedTimes {
    fn values(&self) -> ComputedFigures {
        let (ambient_seconds, expedited_seconds) = (
            1600.0 * self.tpot_ambient_seconds,
            1600.0 * self.tpot_expedited_seconds,
        );
        let short_edges_seconds = 19.0 * (0.010 + 0.050);
        // The audits ask what if the round trips, or decoding at 8 ms per token, had been better all along.
        let decode_8ms_seconds = 1600.0 * 8.0 * MS;
        let audit = |decode_seconds: f64, edges_seconds: f64| {
            (self.prefill_none_seconds + decode_seconds + edges_seconds) / self.config_c_seconds
        };
        vec![
            ("chain.dead_time", 19.0 * (0.050 + 0.200)),
            (
                "chain.config_a",
                self.prefill_none_seconds + ambient_seconds + self.dead_time_seconds,
            ),
            (
                "chain.config_b",
                self.prefill_perfect_seconds + ambient_seconds + self.dead_time_seconds,
            ),
            (
                "chain.config_c",
                self.prefill_perfect_seconds + expedited_seconds,
            ),
            (
                "chain.a_over_c",
                self.config_a_seconds / self.config_c_seconds,
            ),
            (
                "chain.b_over_c",
                self.config_b_seconds / self.config_c_seconds,
            ),
            (
                "chain.lever_prefix",
                self.prefill_none_seconds - self.prefill_perfect_seconds,
            ),
            ("chain.lever_decode", ambient_seconds - expedited_seconds),
            ("audit.a", audit(ambient_seconds, short_edges_seconds)),
            ("audit.b", audit(decode_8ms_seconds, self.dead_time_seconds)),
            ("audit.c", audit(decode_8ms_seconds, short_edges_seconds)),
        ]
    }
}

fn map_reduce(grouped: &Reference) -> ComputedFigures {
    let (map_seconds, reduce_prefill_seconds) =
        (grouped.linear_seconds(6000), grouped.linear_seconds(4200));
    let reduce_seconds = reduce_prefill_seconds + 400.0 * grouped.tpot_seconds(1, 4400);
    let serial_seconds =
        |maps: u64| maps as f64 * (map_seconds + 250.0 * grouped.tpot_seconds(1, 6125));
    let batched_seconds =
        |maps: u64| maps as f64 * map_seconds + 250.0 * grouped.tpot_seconds(maps, 6125);
    let (serial16_seconds, batched16_seconds) = (
        serial_seconds(16) + reduce_seconds,
        batched_seconds(16) + reduce_seconds,
    );
    vec![
        ("mapreduce.map_prefill", map_seconds),
        ("mapreduce.reduce_prefill", reduce_prefill_seconds),
        ("mapreduce.reduce", reduce_seconds),
        ("mapreduce.serial16", serial16_seconds),
        ("mapreduce.batched16", batched16_seconds),
        ("mapreduce.speedup16", serial16_seconds / batched16_seconds),
        ("mapreduce.serial64", serial_seconds(64)),
        ("mapreduce.batched64", batched_seconds(64)),
    ]
}

fn repeat() -> ComputedFigures {
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

fn stall(large: &Reference) -> ComputedFigures {
    let session_bytes = large.kv_bytes(16_384);
    let recompute_seconds = large.linear_seconds(16_384);
    // A swap moves the session out and in again, over PCIe 5.
    let moved_bytes = 2.0 * session_bytes;
    vec![
        ("stall.kv_per_token_13b", large.kv_bytes(1) / 1e6),
        ("stall.session_13b", session_bytes / GB),
        ("stall.recompute_13b", recompute_seconds),
        ("stall.swap_13b", fetch_seconds(moved_bytes, 64.0 * GB)),
        (
            "stall.breakeven_13b",
            break_even_bandwidth(moved_bytes, recompute_seconds) / GB,
        ),
    ]
}

fn chain_of_50() -> ComputedFigures {
    let dead_time_seconds = 49.0 * (0.080 + 0.150);
    vec![
        ("chain50.dead_time", dead_time_seconds),
        ("chain50.speedup", (12.0 + dead_time_seconds) / 12.0),
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
        let facts: FigureFile = toml::from_str(include_str!("../data/figures.toml")).unwrap();
        assert_eq!(computed(&facts.figure).unwrap().len(), facts.figure.len());
    }

    #[test]
    fn the_fixture_carries_the_reference_facts() {
        let path = "../../shared/reference/course-figures.toml";
        let Ok(text) = std::fs::read_to_string(path) else {
            println!("skipped: no ../shared");
            return;
        };
        let reference: FigureFile = toml::from_str(&text).unwrap();
        let ours: FigureFile = toml::from_str(include_str!("../data/figures.toml")).unwrap();
        let facts = |f: FigureFile| {
            f.figure
                .into_iter()
                .map(|f| (f.id, f.printed, f.unit, f.tolerance))
        };
        assert!(facts(ours).eq(facts(reference)));
    }
}
