//! From flags to a question to a report: brackets, curves, regret.

use anyhow::Result;
use cli::output::Forms;
use experiment::{Brackets as Question, CurvePoints, Regrets};
use reports::{brackets_page, csv, curve_page, regret_csv, regret_page};

use crate::args::{Brackets, Curve, Regret};

pub(crate) fn brackets(args: &Brackets) -> Result<()> {
    let question = Question {
        options: args.effort.options(),
        no_bypass: args.no_bypass,
        timings: args.timings,
    };
    let capacities = &args.capacities.capacities;
    let report = args.common.ask(capacities, |experiment, progress| {
        experiment.brackets(&question, progress)
    })?;
    args.common.output.emit(&Forms {
        record: &report,
        page: &brackets_page,
        markdown: None,
        csv: &|report| csv(&report.runs),
    })
}

pub(crate) fn curve(args: &Curve) -> Result<()> {
    let points = match args.capacities.is_empty() {
        true => CurvePoints::Spaced(args.points),
        false => CurvePoints::Capacities,
    };
    let report = args.common.ask(&args.capacities, |experiment, progress| {
        experiment.curve(points, progress)
    })?;
    args.common.output.emit(&Forms {
        record: &report,
        page: &curve_page,
        markdown: None,
        csv: &|report| csv(&report.runs),
    })
}

pub(crate) fn regret(args: &Regret) -> Result<()> {
    let question = Regrets {
        policies: args.policies.factories()?,
        options: args.effort.options(),
        seed: args.policies.seed,
    };
    let capacities = &args.capacities.capacities;
    let report = args.common.ask(capacities, |experiment, progress| {
        experiment.regret(&question, progress)
    })?;
    args.common.output.emit(&Forms {
        record: &report,
        page: &regret_page,
        markdown: None,
        csv: &regret_csv,
    })
}
