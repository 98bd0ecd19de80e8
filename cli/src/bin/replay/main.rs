//! `replay`: traces through a prefix cache under policies; prefill recovered.

mod args;
mod policies_command;
mod runs;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    cli::exit::clean_up_on_interrupt();
    let Args { command, replay } = Args::parse();
    cli::exit::exit_code(match command {
        Some(Command::Policies { name }) => policies_command::print(name.as_deref()),
        None => runs::replay(&replay),
    })
}
