//! Output that is whole or not there.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use trace::AtomicFile;

/// Flags that say what the output looks like and where it goes. `F` lists the forms of the command.
#[derive(Debug, clap::Args)]
pub struct Output<F: ValueEnum + Default + Send + Sync + 'static = Format> {
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: F,

    /// Write the output to a file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Forms of output that most commands have.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One object, for machines.
    Json,
    /// A line a run.
    Csv,
}

/// Writes to the file, or to standard output where none is named. The file appears whole or not at all: it is written
/// beside its place, then renamed.
///
/// # Errors
/// If the folder cannot be written, the disk is full, or standard output is closed.
pub fn write_output(text: &str, out: Option<&Path>) -> Result<()> {
    let Some(path) = out else {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        return Ok(stdout.flush()?);
    };
    let context = || format!("cannot write {}", path.display());
    let mut file = AtomicFile::create(path).with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    file.commit().with_context(context)?;
    Ok(())
}

/// Fails early where [`write_output`] would fail after all the work.
///
/// # Errors
/// If a file cannot be made in that folder, or the path is a folder.
pub fn check_writable(path: &Path) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    AtomicFile::create(path).map(drop).with_context(context)
}
