//! The tables that `trace-gen inspect` and `trace-gen compare` print.

use serde::Serialize;
use trace_import::inspect::{Quantiles, Summary};
use trace_import::tools::{Comparison, Dimension};

use crate::csv_form::csv;
use crate::numbers::grouped;
use crate::page::{Page, Section};
use crate::table::{Align, Column, Table};

/// What a trace holds.
pub fn inspect_page(summary: &Summary) -> Page {
    let head = format!("{} (xxh3 {})", summary.path, summary.xxh3);
    let mut facts = Table::new([(String::new(), Align::Left), (String::new(), Align::Right)]);
    for (name, value) in facts_of(summary) {
        facts.push(vec![name.to_owned(), value]);
    }
    let quantiles = quantiles_of(summary);
    Page(vec![
        Section {
            head: vec![head],
            table: facts,
            notes: Vec::new(),
        },
        Section {
            table: Table::of(QUANTILES, &quantiles.iter().collect::<Vec<_>>()),
            ..Section::default()
        },
    ])
}

fn facts_of(summary: &Summary) -> [(&'static str, String); 12] {
    let rate = summary.infinite_cache_token_hit_rate;
    [
        ("content", summary.content.to_owned()),
        ("tokens per block", grouped(u64::from(summary.block_tokens))),
        ("requests", grouped(summary.requests)),
        ("sessions", grouped(summary.sessions)),
        (
            "span, hours",
            format!("{:.3}", summary.span_seconds / 3_600.0),
        ),
        ("prompt tokens", grouped(summary.prompt_tokens)),
        ("output tokens", grouped(summary.output_tokens)),
        ("prompt blocks", grouped(summary.prompt_blocks)),
        ("block touches", grouped(summary.block_touches)),
        ("distinct blocks", grouped(summary.distinct_blocks)),
        (
            "infinite-cache hit tokens",
            grouped(summary.infinite_cache_hit_tokens),
        ),
        (
            "infinite-cache hit rate",
            rate.map_or("-".to_owned(), |rate| format!("{rate:.4}")),
        ),
    ]
}

/// The quantiles of one property, with the digits after the point that it is told with.
struct QuantilesRow {
    name: &'static str,
    quantiles: Option<Quantiles>,
    digits: usize,
}

impl QuantilesRow {
    fn cell(&self, of: fn(&Quantiles) -> f64) -> String {
        self.quantiles.as_ref().map_or("-".to_owned(), |found| {
            format!("{:.*}", self.digits, of(found))
        })
    }
}

const QUANTILES: &[Column<QuantilesRow>] = &[
    Column::words("", |row| row.name.to_owned()),
    Column::numbers("min", |row| row.cell(|q| q.min)),
    Column::numbers("p10", |row| row.cell(|q| q.p10)),
    Column::numbers("p50", |row| row.cell(|q| q.p50)),
    Column::numbers("p90", |row| row.cell(|q| q.p90)),
    Column::numbers("p99", |row| row.cell(|q| q.p99)),
    Column::numbers("max", |row| row.cell(|q| q.max)),
    Column::numbers("mean", |row| row.cell(|q| q.mean)),
];

fn quantiles_of(summary: &Summary) -> [QuantilesRow; 4] {
    let row = |name, quantiles, digits| QuantilesRow {
        name,
        quantiles,
        digits,
    };
    [
        row("prompt tokens", summary.prompt_tokens_quantiles, 0),
        row("output tokens", summary.output_tokens_quantiles, 0),
        row("gap, s", summary.gap_seconds_quantiles, 3),
        row(
            "gap in session, s",
            summary.session_gap_seconds_quantiles,
            3,
        ),
    ]
}

const COMPARISON: &[Column<Dimension>] = &[
    Column::words("", |of| of.name.to_owned()),
    Column::numbers("a p10", |of| quantile(of, 9, |pair| pair.0)),
    Column::numbers("b p10", |of| quantile(of, 9, |pair| pair.1)),
    Column::numbers("a p50", |of| quantile(of, 49, |pair| pair.0)),
    Column::numbers("b p50", |of| quantile(of, 49, |pair| pair.1)),
    Column::numbers("a p90", |of| quantile(of, 89, |pair| pair.0)),
    Column::numbers("b p90", |of| quantile(of, 89, |pair| pair.1)),
    Column::numbers("KS", |of| distance(of.kolmogorov)),
    Column::numbers("log2", |of| distance(of.log2_distance)),
];

fn quantile(dimension: &Dimension, place: usize, of: fn((f64, f64)) -> f64) -> String {
    let pair = dimension.quantiles.get(place);
    pair.map_or("-".to_owned(), |pair| short(of((pair.a, pair.b))))
}

fn distance(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}

/// A value in few characters.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2}M", value / 1e6),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

/// How far two traces are apart.
pub fn compare_page(compared: &Comparison) -> Page {
    let dimensions: Vec<_> = compared.dimensions.iter().collect();
    Page(vec![Section {
        head: vec![format!("a: {}", compared.a), format!("b: {}", compared.b)],
        table: Table::of(COMPARISON, &dimensions),
        notes: vec![
            "KS: greatest difference of the two distributions, 0 to 1; log2: how many doublings apart, on average".to_owned(),
        ],
    }])
}

/// A quantile of both traces.
#[derive(Serialize)]
struct QuantileRow {
    dimension: &'static str,
    share: f64,
    a: f64,
    b: f64,
}

/// The quantiles as CSV, one line per quantile.
pub fn compare_csv(compared: &Comparison) -> String {
    let rows = compared.dimensions.iter().flat_map(|of| {
        of.quantiles.iter().map(|pair| QuantileRow {
            dimension: of.name,
            share: pair.share,
            a: pair.a,
            b: pair.b,
        })
    });
    csv(&rows.collect::<Vec<_>>())
}
