//! `oracle`: what knowing the future would have allowed.

mod args;
mod commands;
mod proofs;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    let Args { command, brackets } = Args::parse();
    cli::exit::exit_code(match command {
        Some(Command::Curve(args)) => commands::curve(&args),
        Some(Command::Regret(args)) => commands::regret(&args),
        Some(Command::Certify(args)) => proofs::certify(&args),
        Some(Command::Verify(args)) => proofs::verify(&args),
        None => commands::brackets(&brackets),
    })
}
