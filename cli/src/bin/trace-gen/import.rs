//! `trace-gen import`: one subcommand a format, made from the registry.

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, Subcommand, value_parser};
use cli::progress::progress_bar;
use trace_gen::import::{FORMATS, Format, Imported, Job, Kind, Opt, Values};

use crate::report;

/// What to import, and how.
pub(crate) struct Import {
    format: &'static Format,
    input: PathBuf,
    out: PathBuf,
    strict: bool,
    values: Values,
}

pub(crate) fn run(import: Import) -> Result<()> {
    let Import {
        format,
        input,
        out,
        strict,
        values,
    } = import;
    let bar = progress_bar(0, "reading files");
    let mut progress = |done: usize, of: usize| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    };
    let mut job = Job {
        format,
        input: &input,
        out: &out,
        strict,
        values,
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
        eprintln!("  {note}");
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
        let given = format.options.iter().filter_map(|option| {
            let value = match option.kind {
                Kind::Flag => matches.get_flag(option.name).then(|| "true".to_owned()),
                _ => matches.get_one::<String>(option.name).cloned(),
            };
            Some((option.name.to_owned(), value?))
        });
        let values = Values::new(format, given)
            .map_err(|fault| clap::Error::raw(clap::error::ErrorKind::InvalidValue, fault))?;
        Ok(Self {
            format,
            input: path("input"),
            out: path("out"),
            strict: matches.get_flag("strict"),
            values,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn of_format(format: &'static Format) -> Command {
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
    command.args(format.options.iter().map(|option| of_option(option)))
}

fn of_option(option: &'static Opt) -> Arg {
    let arg = Arg::new(option.name)
        .long(option.name)
        .help(option.about.trim_end_matches('.'));
    let arg = match option.default {
        Some(default) => arg.default_value(default),
        None => arg,
    };
    match option.kind {
        Kind::Flag => arg.action(ArgAction::SetTrue),
        Kind::Choice(names) => arg
            .value_name("NAME")
            .value_parser(PossibleValuesParser::new(names)),
        kind => arg
            .value_name(match kind {
                Kind::Text(what) => what,
                Kind::Span => "TIME",
                _ => "N",
            })
            .value_parser(move |text: &str| kind.check(text).map(|()| text.to_owned())),
    }
}
