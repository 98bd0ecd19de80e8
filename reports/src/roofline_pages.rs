//! The tables that `roofline` prints.

use calibrate::{ErrorRow, Errors, Figure, Geometry};
use roofline::{
    Calibration, CostEntry, Deployment, FetchCost, Gpu, KernelTiming, LaunchCosts, Model,
    ModelPart, PassCost, Precision, TierCost,
};
use serde::Serialize;

use crate::numbers::{four_digits, grouped};
use crate::page::{Page, Section};
use crate::replay_page::calibrated_by;
use crate::table::{Column, Table};

const FIGURES: &[Column<Figure>] = &[
    Column::words("figure", |f| f.id.clone()),
    Column::words("unit", |f| f.unit.clone()),
    Column::numbers("printed", |f| four_digits(f.printed)),
    Column::numbers("computed", |f| four_digits(f.computed)),
    Column::numbers("off", |f| {
        format!("{:+.2}%", (f.computed / f.printed - 1.0) * 100.0)
    }),
    Column::numbers("allowed", |f| {
        format!("{}%", four_digits(f.tolerance * 100.0))
    }),
    Column::numbers("ok", |f| if f.ok { "yes" } else { "NO" }.to_owned()),
];

/// Published figures beside what they come out as.
pub fn figures_page(figures: &[Figure]) -> Page {
    let ok = figures.iter().filter(|f| f.ok).count();
    let note = format!(
        "{ok} of {} figures within the rounding they are printed with",
        figures.len()
    );
    page(Vec::new(), FIGURES, figures, vec![note])
}

/// One section of a table of records.
fn page<R>(head: Vec<String>, columns: &[Column<R>], records: &[R], notes: Vec<String>) -> Page {
    let records: Vec<_> = records.iter().collect();
    Page(vec![Section {
        head,
        table: Table::of(columns, &records),
        notes,
    }])
}

/// A part of a pass, or all of it.
struct PartRow {
    name: &'static str,
    costs: LaunchCosts,
    /// Of the time of the whole pass.
    share: f64,
}

const PARTS: &[Column<PartRow>] = &[
    Column::words("part", |row| row.name.to_owned()),
    Column::numbers("kernels", |row| four_digits(row.costs.launches)),
    Column::numbers("TFLOP", |row| four_digits(row.costs.flops / 1e12)),
    Column::numbers("GB", |row| four_digits(row.costs.bytes / 1e9)),
    Column::numbers("ms", |row| four_digits(row.costs.seconds * 1e3)),
    Column::numbers("share", |row| format!("{:.1}%", 100.0 * row.share)),
    Column::numbers("datasheet ms", |row| {
        four_digits(row.costs.datasheet_seconds * 1e3)
    }),
];

/// Where the time of a pass is spent.
pub fn explain_page(cost: &PassCost, deployment: &Deployment<'_>) -> Page {
    let row = |name, costs: &LaunchCosts| PartRow {
        name,
        costs: *costs,
        share: costs.seconds / cost.total.seconds.max(f64::MIN_POSITIVE),
    };
    let parts = cost.parts.iter().map(|p| row(part_name(p.part), &p.costs));
    let rows: Vec<_> = parts.chain([row("all", &cost.total)]).collect();
    let Deployment {
        model, gpu, gpus, ..
    } = deployment;
    let mut head = vec![format!("{} on {gpus} x {}; per GPU", model.name, gpu.name)];
    if let KernelTiming::Calibrated(calibration) = deployment.timing {
        head.extend(calibration_lines(calibration, gpu));
        let guessed = calibration.unmeasured(model, gpu, *gpus);
        if !guessed.is_empty() {
            let guessed = guessed.join(", ");
            head.push(format!(
                "not measured, priced as their nearest kin: {guessed}"
            ));
        }
    }
    let per_gpu_bytes = model.weight_bytes() / f64::from(*gpus);
    if per_gpu_bytes > gpu.memory_bytes {
        head.push(format!(
            "warning: {} GB of weights per GPU do not fit its {} GB",
            four_digits(per_gpu_bytes / 1e9),
            four_digits(gpu.memory_bytes / 1e9)
        ));
    }
    page(head, PARTS, &rows, Vec::new())
}

/// Whose efficiencies a pass is priced with, and what of it was not measured on that GPU.
fn calibration_lines(calibration: &Calibration, gpu: &Gpu) -> Vec<String> {
    let on = if calibration.name == gpu.calibration {
        &gpu.calibrated_on
    } else {
        &calibration.gpu
    };
    let mut lines = vec![format!(
        "efficiencies of {} ({}), measured on {on}",
        calibration.name, calibration.stack
    )];
    if let Some(engine) = &calibration.engine {
        lines.push(format!("engine: {} {}", engine.engine, engine.version));
    }
    lines
}

const CALIBRATIONS: &[Column<Calibration>] = &[
    Column::words("calibration", |c| c.name.clone()),
    Column::words("GPU", |c| c.gpu.clone()),
    Column::words("kernels", |c| c.stack.clone()),
    Column::words("engine", |c| match &c.engine {
        Some(engine) => format!("{} {}", engine.engine, engine.version),
        None => "not measured".to_owned(),
    }),
];

/// The calibrations known by name.
pub fn calibrations_page(calibrations: &[Calibration]) -> Page {
    page(Vec::new(), CALIBRATIONS, calibrations, Vec::new())
}

fn part_name(part: ModelPart) -> &'static str {
    match part {
        ModelPart::Projections => "projections",
        ModelPart::Attention => "attention",
        ModelPart::Mlp => "mlp",
        ModelPart::Experts => "experts",
        ModelPart::Ssm => "state space",
        ModelPart::Elementwise => "elementwise",
        ModelPart::Head => "head",
        ModelPart::Collectives => "collectives",
        ModelPart::Engine => "engine",
    }
}

const TIERS: &[Column<TierCost>] = &[
    Column::words("tier", |t| t.tier.name.clone()),
    Column::words("faster", |t| {
        if t.fetch { "fetch" } else { "recompute" }.to_owned()
    }),
    Column::numbers("GB/s", |t| four_digits(t.tier.bandwidth / 1e9)),
    Column::numbers("fetch ms", |t| four_digits(t.fetch_seconds * 1e3)),
    Column::numbers("against recompute", |t| {
        format!("{}x", four_digits(t.speedup))
    }),
];

/// Whether a cached prefix is better fetched or computed again.
pub fn fetch_page(fetch: &FetchCost) -> Page {
    let head = format!(
        "{} tokens of KV: {} GB, {} ms to compute again; break-even at {} GB/s",
        grouped(fetch.tokens),
        four_digits(fetch.kv_bytes / 1e9),
        four_digits(fetch.recompute_seconds * 1e3),
        four_digits(fetch.break_even_bandwidth / 1e9),
    );
    let by = calibrated_by(fetch.calibration.as_ref());
    let price = format!("priced by {}{by}", fetch.cost);
    page(vec![head, price], TIERS, &fetch.tiers, Vec::new())
}

const ERRORS: &[Column<ErrorRow>] = &[
    Column::words("shapes", |row| row.range.to_string()),
    Column::numbers("count", |row| grouped(row.shapes as u64)),
    Column::numbers("datasheet", |row| median_and_p90(&row.datasheet)),
    Column::numbers("constant", |row| median_and_p90(&row.constant)),
    Column::numbers("as shipped", |row| median_and_p90(&row.as_shipped)),
    Column::numbers("worst", |row| {
        format!("{:.0}", row.as_shipped.worst * 100.0)
    }),
    Column::numbers("bias", |row| format!("{:+.1}", row.as_shipped.bias * 100.0)),
    Column::numbers("refit", |row| {
        row.refit
            .as_ref()
            .map_or_else(|| "-".to_owned(), median_and_p90)
    }),
];

fn median_and_p90(errors: &Errors) -> String {
    format!("{:.1} / {:.1}", errors.median * 100.0, errors.p90 * 100.0)
}

/// How far predictions are from measurements: one section per operator, GPU and source.
pub fn errors_page(rows: &[ErrorRow]) -> Page {
    let of = |row: &ErrorRow| (row.operator, row.gpu.clone(), row.source);
    let sections = rows.chunk_by(|a, b| of(a) == of(b)).map(|block| {
        let first = &block[0];
        Section {
            head: vec![format!(
                "{} on {} ({}{})",
                first.operator,
                first.gpu,
                first.source,
                if first.seen_by_the_fit {
                    ", what the calibration was fitted to"
                } else {
                    ""
                }
            )],
            table: Table::of(ERRORS, &block.iter().collect::<Vec<_>>()),
            notes: Vec::new(),
        }
    });
    let mut page = Page(sections.collect());
    if let Some(last) = page.0.last_mut() {
        last.notes.push(
            "Errors in per cent of the measured time: median / 90th percentile; largest and bias are those of the calibration as shipped; refits are to the same source, on shapes held out."
                .to_owned(),
        );
    }
    page
}

/// A model in a list.
#[derive(Serialize)]
pub struct ModelRow {
    name: String,
    parameters: f64,
    active_parameters: f64,
    layers: u32,
    kv_bytes_per_token: u64,
    state_bytes: u64,
    /// What a prefix cache holds of a token, and of a state from which a prompt resumes; 0 where it resumes anywhere.
    cached_bytes_per_token: u64,
    saved_state_bytes: u64,
}

impl ModelRow {
    /// What the list says of a model.
    pub fn of(model: &Model) -> Self {
        let memory = model.prefix_memory();
        Self {
            name: model.name.clone(),
            parameters: model.parameters,
            active_parameters: model.active_parameters,
            layers: model.layers(),
            kv_bytes_per_token: model.kv_bytes_per_token(),
            state_bytes: model.state_bytes(),
            cached_bytes_per_token: memory.kv_bytes_per_token,
            saved_state_bytes: memory.state.map_or(0, |state| state.at(u64::MAX)),
        }
    }
}

const MODELS: &[Column<ModelRow>] = &[
    Column::words("model", |m| m.name.clone()),
    Column::numbers("parameters 1e9", |m| four_digits(m.parameters / 1e9)),
    Column::numbers("per token 1e9", |m| four_digits(m.active_parameters / 1e9)),
    Column::numbers("layers", |m| m.layers.to_string()),
    Column::numbers("KV B/token", |m| grouped(m.kv_bytes_per_token)),
    Column::numbers("cached B/token", |m| grouped(m.cached_bytes_per_token)),
    Column::numbers("saved state B", |m| grouped(m.saved_state_bytes)),
];

/// The models known by name.
pub fn models_page(rows: &[ModelRow]) -> Page {
    page(Vec::new(), MODELS, rows, Vec::new())
}

const GPUS: &[Column<Gpu>] = &[
    Column::words("GPU", |g| g.name.clone()),
    Column::words("efficiencies of", |g| g.calibrated_on.clone()),
    Column::numbers("TFLOP/s", |g| four_digits(g.peak_flops / 1e12)),
    Column::numbers("GB/s", |g| four_digits(g.memory_bandwidth / 1e9)),
    Column::numbers("GB", |g| four_digits(g.memory_bytes / 1e9)),
    Column::numbers("host GB/s", |g| four_digits(g.host_bandwidth / 1e9)),
];

/// The GPUs known by name.
pub fn gpus_page(gpus: &[Gpu]) -> Page {
    page(Vec::new(), GPUS, gpus, Vec::new())
}

/// A cost model in a list.
#[derive(Serialize)]
pub struct CostRow {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    idea: &'static str,
    parameters: Vec<CostParameter>,
}

/// A parameter of a cost model.
#[derive(Serialize)]
struct CostParameter {
    name: &'static str,
    default: &'static str,
    values: String,
    help: &'static str,
}

impl CostRow {
    /// What the list says of a cost model.
    pub fn of(entry: &CostEntry) -> Self {
        let parameter = |param: &params::Param| CostParameter {
            name: param.name,
            default: param.default,
            values: param.domain.to_string(),
            help: param.help,
        };
        Self {
            name: entry.name,
            summary: entry.summary,
            source: entry.source,
            idea: entry.idea,
            parameters: entry.params.iter().map(parameter).collect(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let facts = [
            self.name.to_owned(),
            format!("  {}", self.summary),
            format!("  source     {}", self.source),
            format!("  idea       {}", self.idea),
        ];
        let parameters = self.parameters.iter().map(|p| {
            format!(
                "  parameter  {}={}: {} ({})",
                p.name, p.default, p.help, p.values
            )
        });
        facts.into_iter().chain(parameters).collect()
    }
}

/// The cost models known by name, each described.
pub fn costs_page(rows: &[CostRow]) -> Page {
    let section = |row: &CostRow| Section {
        head: row.lines(),
        ..Section::default()
    };
    Page(rows.iter().map(section).collect())
}

/// A model of a catalogue: its KV, or why it has none here.
#[derive(Serialize)]
pub struct CatalogueRow {
    id: String,
    formula: String,
    kv_bytes_per_token: Option<u64>,
    refused: Option<String>,
}

impl CatalogueRow {
    /// What the list says of a model.
    pub fn of(model: &Geometry) -> Self {
        let bytes = model.kv_bytes_per_token(Precision::Fp16);
        Self {
            id: model.id.clone(),
            formula: model.formula.clone(),
            refused: bytes.as_ref().err().map(ToString::to_string),
            kv_bytes_per_token: bytes.ok(),
        }
    }
}

const CATALOGUE: &[Column<CatalogueRow>] = &[
    Column::words("model", |row| row.id.clone()),
    Column::words("formula", |row| row.formula.clone()),
    Column::numbers("KV B/token", |row| {
        row.kv_bytes_per_token
            .map_or_else(|| "refused".to_owned(), grouped)
    }),
];

/// The models of a catalogue.
pub fn catalogue_page(rows: &[CatalogueRow]) -> Page {
    page(Vec::new(), CATALOGUE, rows, Vec::new())
}
