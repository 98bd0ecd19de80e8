//! What prefill costs: the course's figures, where the time of a pass goes, calibration and its validation.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use calibrate::{Measurement, Split};
use clap::{Args, Parser, Subcommand, ValueEnum};
use cli::output::{Format, Forms, write_output};
use reports::{
    CatalogueRow, CostRow, ModelRow, Page, calibrations_page, catalogue_page, costs_page, csv,
    errors_page, explain_page, fetch_page, figures_page, gpus_page, models_page,
};
use roofline::{COST_MODELS, Calibration, Deployment, Gpu, KernelTiming, Model, Precision};
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  roofline figures
  roofline explain --model llama-3-8b --gpu h100 --cached 4096 --new 512
  roofline explain --model path/to/config.json --gpu a100 --gpus 4 --new 2048
  roofline fetch --model course-7b --gpu course-h100 --tokens 4096
  roofline fit measurements.csv --gpu h100 -o calibration.toml
  roofline validate measurements.csv --by shape --max-median 15

Exit codes: 0 done, 1 failed or past a threshold, 2 wrong usage.";

/// What prefill costs, from model, GPU and token counts.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How to print.
    #[arg(long, value_enum, global = true, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Subcommand)]
enum Command {
    /// The course's 82 published figures beside what they come out as here; fails if one is off.
    Figures,
    /// Where the time of one pass goes, a prefill or a decode step. `replay` prices long prompts in chunks of 8,192 tokens.
    Explain(Explain),
    /// Fetch a cached prefix or compute it again: break-even bandwidth, and each tier against it.
    Fetch(Fetch),
    /// Fit a calibration file to measurements.
    Fit(Fit),
    /// How far predictions are from measurements they were not fitted to.
    Validate(Validate),
    /// The models known by name, and what their KV weighs.
    Models {
        /// Instead, the models of a catalogue in YAML.
        #[arg(long)]
        catalogue: Option<PathBuf>,
    },
    /// The GPUs known by name.
    Gpus,
    /// The measured efficiencies known by name.
    Calibrations,
    /// The cost models, what they do, and their parameters.
    Costs,
}

#[derive(Args)]
struct On {
    /// A model by name (`roofline models`), or the path of a Hugging Face config.json.
    #[arg(long, default_value = "course-7b")]
    model: String,
    /// A GPU by name (`roofline gpus`), or the path of a TOML file.
    #[arg(long, default_value = "course-h100")]
    gpu: String,
    /// Format of weights.
    #[arg(long, value_enum)]
    weights: Option<Width>,
    /// Format of cached keys and values.
    #[arg(long, value_enum)]
    kv: Option<Width>,
    /// Measured efficiencies instead of the GPU's own: by name (`roofline calibrations`), or the path of a TOML file.
    #[arg(long)]
    calibration: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Width {
    Fp16,
    Fp8,
    Int4,
}

impl From<Width> for Precision {
    fn from(width: Width) -> Self {
        match width {
            Width::Fp16 => Self::Fp16,
            Width::Fp8 => Self::Fp8,
            Width::Int4 => Self::Int4,
        }
    }
}

impl On {
    fn model(&self) -> Result<Model> {
        let mut model = roofline::read_model(&self.model)?;
        model.weight_precision = self.weights.map_or(model.weight_precision, Into::into);
        model.kv_precision = self.kv.map_or(model.kv_precision, Into::into);
        Ok(model)
    }

    fn gpu(&self) -> Result<Gpu> {
        Ok(roofline::read_gpu(&self.gpu)?)
    }

    fn calibration(&self, gpu: &Gpu) -> Result<Calibration> {
        calibration(gpu, self.calibration.as_deref())
    }
}

#[derive(Args)]
struct Explain {
    #[command(flatten)]
    on: On,
    /// Tokens already cached; with --decode the whole context.
    #[arg(long, default_value_t = 0)]
    cached: u64,
    /// New tokens.
    #[arg(long, default_value_t = 1024)]
    new: u64,
    /// Sequences.
    #[arg(long, default_value_t = 1)]
    batch: u64,
    /// Tensor-parallel GPUs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    gpus: u32,
    /// One decode step instead of a prefill.
    #[arg(long)]
    decode: bool,
}

#[derive(Args)]
struct Fetch {
    #[command(flatten)]
    on: On,
    /// Tokens of the cached prefix.
    #[arg(long, default_value_t = 4096)]
    tokens: u64,
    /// The cost model that recomputing is priced by (`roofline costs`).
    #[arg(long, default_value = COST_MODELS[0].name)]
    cost: String,
    /// Another tier, in GB/s; may be given several times.
    #[arg(long, value_name = "GB/S")]
    bandwidth: Vec<f64>,
}

#[derive(Args)]
struct Fit {
    /// Measurement files, .csv or .csv.zst.
    #[arg(required = true)]
    measurements: Vec<PathBuf>,
    /// The GPU to calibrate.
    #[arg(long)]
    gpu: String,
    /// Use only measurements of this operator; may be given several times.
    #[arg(long)]
    operator: Vec<String>,
    /// A calibration (a name, or the path of a TOML file) for what was not measured, instead of the GPU's own.
    #[arg(long)]
    base: Option<String>,
    /// What the calibration is called.
    #[arg(long, default_value = "fitted")]
    name: String,
    /// The software whose kernels were measured.
    #[arg(long, default_value = "not stated")]
    stack: String,
    /// The engine that ran whole prefills.
    #[arg(long, default_value = "engine")]
    engine: String,
    /// Its version.
    #[arg(long, default_value = "of a version not stated")]
    engine_version: String,
    /// The calibration file to write; else it is printed.
    #[arg(long, short)]
    out: Option<PathBuf>,
}

#[derive(Args)]
struct Validate {
    /// Measurement files, .csv or .csv.zst.
    #[arg(required = true)]
    measurements: Vec<PathBuf>,
    /// The calibration, by name or path, that is tried as shipped, instead of each GPU's own.
    #[arg(long)]
    calibration: Option<String>,
    /// What is held out together.
    #[arg(long, value_enum, default_value_t = By::Shape)]
    by: By,
    /// Parts that are held out in turn, when by shape.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..))]
    folds: u8,
    /// Fail if an operator's median error as shipped is above this, in percent.
    #[arg(long, value_name = "PERCENT")]
    max_median: Option<f64>,
    /// Fail if an operator's 90th percentile as shipped is above this, in percent.
    #[arg(long, value_name = "PERCENT")]
    max_p90: Option<f64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Weight or head shapes.
    Shape,
    /// Models: fitted to all but one.
    Model,
}

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    cli::exit::exit_code(run(Cli::parse()))
}

fn run(cli: Cli) -> Result<()> {
    let print = Print(cli.format);
    match cli.command {
        Command::Figures => figures(&print),
        Command::Explain(args) => explain(&args, &print),
        Command::Fetch(args) => fetch(&args, &print),
        Command::Fit(args) => fit(&args),
        Command::Validate(args) => validate(&args, &print),
        Command::Models { catalogue: None } => {
            let rows: Vec<_> = Model::presets()?.iter().map(ModelRow::of).collect();
            print.records(&rows, models_page)
        }
        Command::Models {
            catalogue: Some(path),
        } => catalogue(&path, &print),
        Command::Costs => {
            let rows: Vec<_> = COST_MODELS.iter().map(CostRow::of).collect();
            print.records(&rows, costs_page)
        }
        Command::Calibrations => print.records(&Calibration::presets()?, calibrations_page),
        Command::Gpus => print.records(&Gpu::presets()?, gpus_page),
    }
}

struct Print(Format);

impl Print {
    /// Prints a list of records.
    fn records<T: Serialize>(&self, records: &[T], page: fn(&[T]) -> Page) -> Result<()> {
        self.record(&records, &|records| page(records), &|records| csv(records))
    }

    /// Prints one record, whose spreadsheet form is `csv`.
    fn record<R: Serialize>(
        &self,
        record: &R,
        page: &dyn Fn(&R) -> Page,
        csv: &dyn Fn(&R) -> String,
    ) -> Result<()> {
        let forms = Forms {
            record,
            page,
            markdown: None,
            csv,
        };
        write_output(&forms.text(self.0), None)
    }
}

fn figures(print: &Print) -> Result<()> {
    let figures = calibrate::figures()?;
    print.records(&figures, figures_page)?;
    let wrong = figures.iter().filter(|f| !f.ok).count();
    if wrong > 0 {
        bail!(
            "{wrong} of {} figures are off by more than their rounding",
            figures.len()
        );
    }
    Ok(())
}

fn explain(args: &Explain, print: &Print) -> Result<()> {
    let (model, gpu) = (args.on.model()?, args.on.gpu()?);
    let calibration = args.on.calibration(&gpu)?;
    let deployment = Deployment {
        model: &model,
        gpu: &gpu,
        gpus: args.gpus,
        timing: KernelTiming::Calibrated(&calibration),
    };
    let cost = if args.decode {
        deployment.decode_time(args.batch, args.cached)
    } else {
        deployment.prefill_time(args.batch, args.cached, args.new)
    };
    print.record(&cost, &|cost| explain_page(cost, &deployment), &|cost| {
        csv(&cost.parts)
    })
}

fn calibration(gpu: &Gpu, name: Option<&str>) -> Result<Calibration> {
    Ok(roofline::read_calibration(
        name.unwrap_or(&gpu.calibration),
    )?)
}

fn fetch(args: &Fetch, print: &Print) -> Result<()> {
    let (model, gpu) = (args.on.model()?, args.on.gpu()?);
    let calibration = args.on.calibration(&gpu)?;
    let cost = roofline::calibrated_cost_model(&args.cost, &model, &gpu, Some(&calibration))?;
    let mut tiers = roofline::tiers(&gpu);
    for gb_per_s in &args.bandwidth {
        if !(gb_per_s.is_finite() && *gb_per_s > 0.0) {
            bail!("--bandwidth {gb_per_s} is not a number of GB/s above 0");
        }
        let name = format!("{gb_per_s} GB/s");
        tiers.push(roofline::Tier {
            name,
            bandwidth: gb_per_s * 1e9,
        });
    }
    let fetch = roofline::fetch_or_recompute(&model, &cost, tiers, args.tokens);
    print.record(&fetch, &fetch_page, &|fetch| csv(&fetch.tiers))
}

fn fit(args: &Fit) -> Result<()> {
    let gpu = roofline::read_gpu(&args.gpu)?;
    let base = calibration(&gpu, args.base.as_deref())?;
    let mut measurements = read(&args.measurements)?;
    if !args.operator.is_empty() {
        measurements.retain(|m| args.operator.iter().any(|o| o == m.work.operator()));
    }
    let mut calibration = calibrate::fit_calibration(&gpu, &measurements, &base)?;
    calibration.name.clone_from(&args.name);
    calibration.stack.clone_from(&args.stack);
    if let Some(engine) = &mut calibration.engine {
        engine.engine.clone_from(&args.engine);
        engine.version.clone_from(&args.engine_version);
    }
    write_output(&calibration.to_toml()?, args.out.as_deref())
}

fn read(paths: &[PathBuf]) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for path in paths {
        all.extend(calibrate::read_measurements(path)?);
    }
    Ok(all)
}

fn validate(args: &Validate, print: &Print) -> Result<()> {
    let measurements = read(&args.measurements)?;
    let calibration = args
        .calibration
        .as_deref()
        .map(roofline::read_calibration)
        .transpose()?;
    let split = match args.by {
        By::Shape => Split::Shape,
        By::Model => Split::Model,
    };
    let folds = usize::from(args.folds);
    let table = calibrate::validate(&measurements, calibration.as_ref(), split, folds)?;
    if table.is_empty() {
        bail!("nothing was held out: there is one model only, or no operator that is predicted");
    }
    print.records(&table, errors_page)?;
    let past = |limit: Option<f64>, of: fn(&calibrate::Errors) -> f64| {
        let limit = limit.unwrap_or(f64::INFINITY) / 100.0;
        table
            .iter()
            .find(|row| row.range == "all" && of(&row.as_shipped) > limit)
    };
    let failed = past(args.max_median, |e| e.median).or_else(|| past(args.max_p90, |e| e.p90));
    if let Some(row) = failed {
        let errors = row.as_shipped;
        bail!(
            "{} on {} ({}) is past the threshold: median {:.1}%, 90th percentile {:.1}%",
            row.operator,
            row.gpu,
            row.source,
            errors.median * 100.0,
            errors.p90 * 100.0
        );
    }
    Ok(())
}

fn catalogue(path: &Path, print: &Print) -> Result<()> {
    let models = calibrate::read_catalogue(path)
        .with_context(|| format!("reading the catalogue {}", path.display()))?;
    let rows: Vec<_> = models.iter().map(CatalogueRow::of).collect();
    print.records(&rows, catalogue_page)
}
