//! `oracle`: what knowing the future would have allowed.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    let Args { command, brackets } = Args::parse();
    cli::exit::exit_code(match command {
        Some(Command::Curve(args)) => commands::curve(&args),
        Some(Command::Regret(args)) => commands::regret(&args),
        None => commands::brackets(&brackets),
    })
}
