//! `trace-gen import`: one subcommand a format, made from the registry.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Subcommand, value_parser};
use cli::progress::progress_bar;
use params::{Domain, Param, Params};
use trace_import::Imported;
use trace_import::import::{FORMATS, ImportFormat, ImportJob};

use crate::report;

/// What to import, and how.
pub(crate) struct Import {
    format: &'static ImportFormat,
    input: PathBuf,
    out: PathBuf,
    strict: bool,
    params: Params,
}

pub(crate) fn run(import: Import) -> Result<()> {
    let Import {
        format,
        input,
        out,
        strict,
        params,
    } = import;
    let bar = progress_bar(0, "reading files");
    let mut progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let mut job = ImportJob {
        format,
        input: &input,
        out: &out,
        strict,
        params,
        progress: &mut progress,
    };
    let imported = job.run();
    bar.finish_and_clear();
    let Imported {
        requests,
        sessions,
        notes,
    } = imported?;
    report(&out, &format!("{requests} requests, {sessions} sessions"));
    for note in notes {
        // As in `report`.
        let _ = writeln!(std::io::stderr(), "  {note}");
    }
    Ok(())
}

impl Subcommand for Import {
    fn augment_subcommands(command: Command) -> Command {
        FORMATS
            .iter()
            .fold(command.subcommand_required(true), |command, format| {
                command.subcommand(of_format(format))
            })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        FORMATS.iter().any(|format| format.name == name)
    }
}

impl FromArgMatches for Import {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let format = FORMATS.iter().find(|format| format.name == name);
        let format = format.ok_or_else(missing)?;
        let path = |name| {
            let path = matches.get_one::<PathBuf>(name);
            path.cloned().unwrap_or_default()
        };
        let mut params = Params::new(format.options);
        for option in format.options {
            let value = match option.domain {
                Domain::Flag => matches.get_flag(option.name).then_some("true"),
                _ => matches.get_one::<String>(option.name).map(String::as_str),
            };
            if let Some(value) = value {
                params.set(option.name, value).map_err(|fault| {
                    clap::Error::raw(clap::error::ErrorKind::InvalidValue, fault)
                })?;
            }
        }
        Ok(Self {
            format,
            input: path("input"),
            out: path("out"),
            strict: matches.get_flag("strict"),
            params,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn of_format(format: &'static ImportFormat) -> Command {
    let input = Arg::new("input")
        .required(true)
        .value_name("INPUT")
        .value_parser(value_parser!(PathBuf))
        .help("The file or folder to read; .zst is unpacked");
    let out = Arg::new("out")
        .short('o')
        .long("out")
        .required(true)
        .value_name("OUT.parquet")
        .value_parser(value_parser!(PathBuf))
        .help("The trace to write");
    let strict = Arg::new("strict")
        .long("strict")
        .action(ArgAction::SetTrue)
        .help("Fail, and write nothing, rather than change or drop rows");
    let command = Command::new(format.name)
        .about(format.about.trim_end_matches('.'))
        .after_help(format.details)
        .args([input, out, strict]);
    command.args(format.options.iter().map(of_option))
}

fn of_option(option: &'static Param) -> Arg {
    let arg = Arg::new(option.name)
        .long(option.name)
        .help(option.help.trim_end_matches('.'));
    let arg = match option.default {
        "" => arg,
        default => arg.default_value(default),
    };
    match option.domain {
        Domain::Flag => arg.action(ArgAction::SetTrue),
        Domain::Choice(names) => arg
            .value_name("NAME")
            .value_parser(PossibleValuesParser::new(names)),
        domain => arg
            .value_name(match domain {
                Domain::Text(what) => what,
                Domain::Duration => "TIME",
                _ => "N",
            })
            .value_parser(move |text: &str| {
                let mut alone = Params::new(vec![*option]);
                alone.set(option.name, text).map(|()| text.to_owned())
            }),
    }
}
