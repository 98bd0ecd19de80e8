//! `oracle`: what knowing the future would have allowed.

mod args;
mod brackets;
mod curve;
mod regret;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    let Args { command, brackets } = Args::parse();
    cli::exit::exit_code(match command {
        Some(Command::Curve(args)) => curve::curve(&args),
        Some(Command::Regret(args)) => regret::regret(&args),
        None => brackets::brackets(&brackets),
    })
}
