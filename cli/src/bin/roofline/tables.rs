//! Records as text.

use calibrate::{ErrorRow, Errors, Figure, Geometry};
use comfy_table::{CellAlignment, Table, presets};
use roofline::{
    CostEntry, Deployment, FetchCost, Gpu, LaunchCosts, Model, ModelPart, PassCost, Precision,
};
use serde::Serialize;

/// A table whose first `left` columns are text and the rest numbers.
fn table(header: &[&str], left: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Four significant digits, without an exponent where it reads well.
fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e7).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let digits = 3 - value.abs().max(1e-3).log10().floor() as i32;
    let text = format!("{value:.*}", digits.clamp(0, 6) as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

pub(crate) fn figures(figures: &[Figure]) -> String {
    let rows = figures.iter().map(|f| {
        let verdict = if f.ok { "yes" } else { "NO" };
        let off = (f.computed / f.printed - 1.0) * 100.0;
        vec![
            f.id.clone(),
            f.unit.clone(),
            number(f.printed),
            number(f.computed),
            format!("{off:+.2}%"),
            format!("{}%", number(f.tolerance * 100.0)),
            verdict.to_owned(),
        ]
    });
    let header = [
        "figure", "unit", "printed", "computed", "off", "allowed", "ok",
    ];
    let ok = figures.iter().filter(|f| f.ok).count();
    let all = figures.len();
    table(&header, 2, rows)
        + &format!("\n{ok} of {all} figures within the rounding they are printed with\n")
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
    }
}

pub(crate) fn explain(cost: &PassCost, deployment: &Deployment) -> String {
    let row = |name: &str, of: &LaunchCosts| {
        vec![
            name.to_owned(),
            number(of.launches),
            number(of.flops / 1e12),
            number(of.bytes / 1e9),
            number(of.seconds * 1e3),
            format!(
                "{:.1}%",
                100.0 * of.seconds / cost.total.seconds.max(f64::MIN_POSITIVE)
            ),
            number(of.datasheet_seconds * 1e3),
        ]
    };
    let parts = cost.parts.iter().map(|p| row(part_name(p.part), &p.costs));
    let total = row("all", &cost.total);
    let header = [
        "part",
        "kernels",
        "TFLOP",
        "GB",
        "ms",
        "share",
        "datasheet ms",
    ];
    let Deployment {
        model, gpu, gpus, ..
    } = deployment;
    let head = format!(
        "{} on {gpus} x {}; efficiencies measured on {}; per GPU\n\n",
        model.name, gpu.name, gpu.calibrated_on
    );
    head + &table(&header, 1, parts.chain([total]))
}

pub(crate) fn fetch(fetch: &FetchCost) -> String {
    let rows = fetch.tiers.iter().map(|t| {
        vec![
            t.tier.name.clone(),
            if t.fetch { "fetch" } else { "recompute" }.to_owned(),
            number(t.tier.bandwidth / 1e9),
            number(t.fetch_seconds * 1e3),
            format!("{}x", number(t.speedup)),
        ]
    });
    let head = format!(
        "{} tokens of KV: {} GB, {} ms to compute again; break-even at {} GB/s\n\n",
        reports::grouped(fetch.tokens),
        number(fetch.kv_bytes / 1e9),
        number(fetch.recompute_seconds * 1e3),
        number(fetch.break_even_bandwidth / 1e9),
    );
    head + &table(
        &["tier", "faster", "GB/s", "fetch ms", "against recompute"],
        2,
        rows,
    )
}

pub(crate) fn errors(table_rows: &[ErrorRow]) -> String {
    let pair = |e: &Errors| format!("{:.1} / {:.1}", e.median * 100.0, e.p90 * 100.0);
    let mut text = String::new();
    let mut blocks: Vec<&[ErrorRow]> = Vec::new();
    blocks.extend(
        table_rows
            .chunk_by(|a, b| (a.operator, &a.gpu, a.source) == (b.operator, &b.gpu, b.source)),
    );
    for block in blocks {
        let Some(first) = block.first() else { continue };
        text += &format!("{} on {} ({})\n", first.operator, first.gpu, first.source);
        let rows = block.iter().map(|row| {
            let fitted = &row.calibrated;
            vec![
                format!("  {}", row.range),
                reports::grouped(row.shapes as u64),
                pair(&row.datasheet),
                pair(&row.constant),
                pair(fitted),
                format!("{:.0}", fitted.worst * 100.0),
                format!("{:+.1}", fitted.bias * 100.0),
            ]
        });
        let header = [
            "  shapes",
            "count",
            "datasheet",
            "constant",
            "calibrated",
            "worst",
            "bias",
        ];
        text += &table(&header, 1, rows);
        text.push('\n');
    }
    text + "Errors in percent of the measured time: median / 90th percentile; then the calibrated model's\nlargest and its bias.\n"
}

/// A preset model in a list.
#[derive(Serialize)]
pub(crate) struct ModelRow {
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

pub(crate) fn model_rows(models: &[Model]) -> Vec<ModelRow> {
    let row = |m: &Model| {
        let memory = m.prefix_memory();
        ModelRow {
            name: m.name.clone(),
            parameters: m.parameters,
            active_parameters: m.active_parameters,
            layers: m.layers(),
            kv_bytes_per_token: m.kv_bytes_per_token(),
            state_bytes: m.state_bytes(),
            cached_bytes_per_token: memory.kv_bytes_per_token,
            saved_state_bytes: memory.state.map_or(0, |state| state.at(u64::MAX)),
        }
    };
    models.iter().map(row).collect()
}

pub(crate) fn models(rows: &[ModelRow]) -> String {
    let rows = rows.iter().map(|m| {
        vec![
            m.name.clone(),
            number(m.parameters / 1e9),
            number(m.active_parameters / 1e9),
            m.layers.to_string(),
            reports::grouped(m.kv_bytes_per_token),
            reports::grouped(m.cached_bytes_per_token),
            reports::grouped(m.saved_state_bytes),
        ]
    });
    let header = [
        "model",
        "parameters 1e9",
        "per token 1e9",
        "layers",
        "KV B/token",
        "cached B/token",
        "saved state B",
    ];
    table(&header, 1, rows)
}

pub(crate) fn gpus(gpus: &[Gpu]) -> String {
    let rows = gpus.iter().map(|g| {
        vec![
            g.name.clone(),
            g.calibrated_on.clone(),
            number(g.peak_flops / 1e12),
            number(g.memory_bandwidth / 1e9),
            number(g.memory_bytes / 1e9),
            number(g.host_bandwidth / 1e9),
        ]
    });
    let header = [
        "GPU",
        "efficiencies of",
        "TFLOP/s",
        "GB/s",
        "GB",
        "host GB/s",
    ];
    table(&header, 2, rows)
}

/// A cost model in a list.
#[derive(Serialize)]
pub(crate) struct CostRow {
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

pub(crate) fn cost_rows(entries: &[CostEntry]) -> Vec<CostRow> {
    let row = |entry: &CostEntry| CostRow {
        name: entry.name,
        summary: entry.summary,
        source: entry.source,
        idea: entry.idea,
        parameters: entry
            .params
            .iter()
            .map(|param| CostParameter {
                name: param.name,
                default: param.default,
                values: param.domain.to_string(),
                help: param.help,
            })
            .collect(),
    };
    entries.iter().map(row).collect()
}

pub(crate) fn costs(rows: &[CostRow]) -> String {
    let describe = |row: &CostRow| {
        let CostRow {
            name,
            summary,
            source,
            idea,
            ..
        } = row;
        let head = format!("{name}\n  {summary}\n  source     {source}\n  idea       {idea}\n");
        let parameters = row.parameters.iter().map(|p| {
            format!(
                "  parameter  {}={}: {} ({})\n",
                p.name, p.default, p.help, p.values
            )
        });
        head + &parameters.collect::<String>()
    };
    rows.iter().map(describe).collect::<Vec<_>>().join("\n")
}

/// A model of a catalogue: its KV, or why it has none here.
#[derive(Serialize)]
pub(crate) struct CatalogueRow {
    id: String,
    formula: String,
    kv_bytes_per_token: Option<u64>,
    refused: Option<String>,
}

pub(crate) fn catalogue_rows(models: &[Geometry]) -> Vec<CatalogueRow> {
    let row = |m: &Geometry| {
        let bytes = m.kv_bytes_per_token(Precision::Fp16);
        CatalogueRow {
            id: m.id.clone(),
            formula: m.formula.clone(),
            refused: bytes.as_ref().err().map(ToString::to_string),
            kv_bytes_per_token: bytes.ok(),
        }
    };
    models.iter().map(row).collect()
}

pub(crate) fn catalogue(rows: &[CatalogueRow]) -> String {
    let rows = rows.iter().map(|r| {
        let bytes = r
            .kv_bytes_per_token
            .map_or_else(|| "refused".to_owned(), reports::grouped);
        vec![r.id.clone(), r.formula.clone(), bytes]
    });
    table(&["model", "formula", "KV B/token"], 2, rows)
}
