//! A command for every family of workloads, with a flag for every parameter: both come from the registry.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use params::Params;
use trace_gen::draw::DISTRIBUTIONS;
use trace_gen::families::{PRESETS, families, find};
use trace_gen::plan::Plan;
use trace_gen::{Family, GeneratorContext};

use crate::report;

/// The commands: one a family, and `preset`.
pub(crate) fn commands() -> Vec<Command> {
    let all = families().map(of_family);
    all.chain([presets(), plan()]).collect()
}

/// Runs the command if it is one of these.
pub(crate) fn run(name: &str, matches: &ArgMatches) -> Option<Result<()>> {
    match name {
        "preset" => Some(run_preset(matches)),
        "plan" => Some(run_plan(matches)),
        _ => Some(run_family(find(name).ok()?, matches)),
    }
}

fn of_family(family: &'static Family) -> Command {
    let params = family.params();
    let flags = params.specs().iter().map(|param| {
        let flag = Arg::new(param.name).long(param.name).value_name("VALUE");
        let flag = flag.help_heading("Workload").allow_hyphen_values(true);
        flag.help(format!("{} [default: {}]", param.help, param.default))
    });
    let examples: String = family
        .examples
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    let flags: Vec<_> = flags.collect();
    Command::new(family.name)
        .about(family.summary)
        .long_about(format!("{}.\n\n{}", family.summary, family.about))
        .args(common())
        .args(flags)
        .after_help(format!("{DISTRIBUTIONS}\n\nExamples:\n{examples}"))
}

fn presets() -> Command {
    let names = PRESETS.iter().map(|preset| preset.name);
    let list: String = PRESETS
        .iter()
        .map(|preset| {
            let given: String = preset
                .settings
                .iter()
                .map(|(name, value)| format!(" --{name} {value}"))
                .collect();
            format!(
                "  {}: {}\n    trace-gen {}{given}\n",
                preset.name, preset.summary, preset.family
            )
        })
        .collect();
    Command::new("preset")
        .about("Generate a workload that is known by name")
        .arg(
            Arg::new("name")
                .required(true)
                .value_parser(PossibleValuesParser::new(names))
                .help("Which one"),
        )
        .args(common())
        .after_help(format!("Presets, and what each stands for:\n{list}\nExamples:\n  trace-gen preset repeat-94 -o agents.parquet"))
}

fn common() -> Vec<Arg> {
    vec![
        Arg::new("out")
            .short('o')
            .long("out")
            .value_name("OUT.parquet")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("The trace to write"),
        Arg::new("seed")
            .long("seed")
            .value_parser(value_parser!(u32))
            .default_value("0")
            .help("Seed of everything drawn; two seeds share nothing"),
        Arg::new("tokens")
            .long("tokens")
            .action(ArgAction::SetTrue)
            .help("Write token ids instead of block ids"),
        Arg::new("block-tokens")
            .long("block-tokens")
            .value_parser(value_parser!(u32).range(1..))
            .default_value("16")
            .help("Tokens of a block, where block ids are written"),
        Arg::new("unknown-outputs")
            .long("unknown-outputs")
            .action(ArgAction::SetTrue)
            .help("Write how long outputs are, but not what they consist of"),
    ]
}

fn context(matches: &ArgMatches) -> GeneratorContext {
    let block_tokens = number(matches, "block-tokens");
    GeneratorContext {
        content: match matches.get_flag("tokens") {
            true => trace::Content::Tokens,
            false => trace::Content::Blocks { block_tokens },
        },
        seed: number(matches, "seed"),
        outputs_known: !matches.get_flag("unknown-outputs"),
    }
}

/// A number that has a default.
fn number(matches: &ArgMatches, name: &str) -> u32 {
    matches.get_one(name).copied().unwrap_or_default()
}

fn run_family(family: &'static Family, matches: &ArgMatches) -> Result<()> {
    let mut params = family.params();
    for param in family.params().specs() {
        if let Some(value) = matches.get_one::<String>(param.name) {
            params.set(param.name, value)?;
        }
    }
    write(family, &params, matches)
}

fn run_preset(matches: &ArgMatches) -> Result<()> {
    let name = matches.get_one::<String>("name");
    let preset = PRESETS
        .iter()
        .find(|preset| Some(preset.name) == name.map(String::as_str));
    let Some(preset) = preset else {
        anyhow::bail!("no such preset");
    };
    let family = find(preset.family)?;
    write(family, &preset.params(family)?, matches)
}

fn plan() -> Command {
    Command::new("plan")
        .about("Generate a workload from a file of families and parameters, as `trace-gen fit` writes it")
        .arg(
            Arg::new("file")
                .value_name("PLAN.toml")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The parts: [[part]] with family, tenant and [part.parameters]; they run side by side and share nothing"),
        )
        .args(common())
        .after_help("Examples:\n  trace-gen fit sessions.parquet -o fit.toml\n  trace-gen plan fit.toml -o like-it.parquet --seed 1")
}

fn run_plan(matches: &ArgMatches) -> Result<()> {
    let file = matches.get_one::<PathBuf>("file");
    let (Some(file), Some(out)) = (file, matches.get_one::<PathBuf>("out")) else {
        anyhow::bail!("no plan or output named");
    };
    let requests = Plan::read(file)?.write(out, &context(matches))?;
    report(out, &format!("{requests} requests"));
    Ok(())
}

fn write(family: &'static Family, params: &Params, matches: &ArgMatches) -> Result<()> {
    let Some(out) = matches.get_one::<PathBuf>("out") else {
        anyhow::bail!("no output named");
    };
    let requests = family.write(out, params, &context(matches))?;
    report(out, &format!("{requests} requests"));
    Ok(())
}
