//! From flags to an experiment to a report: brackets, curves, regret.

use anyhow::Result;
use cli::output::Forms;
use cli::progress::TerminalProgress;
use experiment::{Brackets as Question, CurvePoints, Regrets};
use reports::{brackets_page, csv, curve_page, regret_csv, regret_page};

use crate::args::{Brackets, Curve, Regret};

pub(crate) fn brackets(args: &Brackets) -> Result<()> {
    args.output.check()?;
    let prices = args.input.prices()?;
    args.threads.start()?;
    let progress = TerminalProgress::default();
    let capacities = &args.capacities.capacities;
    let experiment = args.input.experiment(prices, capacities, &progress)?;
    let question = Question {
        options: args.effort.options(),
        no_bypass: args.no_bypass,
        timings: args.timings,
    };
    let report = experiment.brackets(&question, &progress)?;
    progress.finish();
    args.output.emit(&Forms {
        record: &report,
        page: &brackets_page,
        markdown: None,
        csv: &|report| csv(&report.runs),
    })
}

pub(crate) fn curve(args: &Curve) -> Result<()> {
    args.output.check()?;
    let prices = args.input.prices()?;
    args.threads.start()?;
    let progress = TerminalProgress::default();
    let experiment = args.input.experiment(prices, &args.capacities, &progress)?;
    let points = match args.capacities.is_empty() {
        true => CurvePoints::Spaced(args.points),
        false => CurvePoints::Capacities,
    };
    let report = experiment.curve(points, &progress)?;
    progress.finish();
    args.output.emit(&Forms {
        record: &report,
        page: &curve_page,
        markdown: None,
        csv: &|report| csv(&report.runs),
    })
}

pub(crate) fn regret(args: &Regret) -> Result<()> {
    let policies = args.policies.factories()?;
    args.output.check()?;
    let prices = args.input.prices()?;
    args.threads.start()?;
    let progress = TerminalProgress::default();
    let capacities = &args.capacities.capacities;
    let experiment = args.input.experiment(prices, capacities, &progress)?;
    let question = Regrets {
        policies,
        options: args.effort.options(),
        seed: args.policies.seed,
    };
    let report = experiment.regret(&question, &progress)?;
    progress.finish();
    args.output.emit(&Forms {
        record: &report,
        page: &regret_page,
        markdown: None,
        csv: &regret_csv,
    })
}
