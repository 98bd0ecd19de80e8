//! Output that is whole or not there.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use reports::Page;
use serde::Serialize;
use trace::AtomicFile;

use crate::exit::printable;

/// Flags that say what the output looks like and where it goes.
#[derive(Debug, clap::Args)]
pub struct Output {
    /// Form of the output.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,

    /// Write the output to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Forms of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For documents.
    Markdown,
    /// One object, for machines.
    Json,
    /// One line per row, with a header.
    Csv,
}

/// What the forms are made of.
pub struct Forms<'a, R> {
    /// The record, for JSON.
    pub record: &'a R,
    /// For people and documents.
    pub page: &'a dyn Fn(&R) -> Page,
    /// For documents, where that is not the page as Markdown.
    pub markdown: Option<&'a dyn Fn(&R) -> String>,
    /// For spreadsheets.
    pub csv: &'a dyn Fn(&R) -> String,
}

impl<R: Serialize> Forms<'_, R> {
    /// The record in one form.
    pub fn text(&self, format: Format) -> String {
        match (format, self.markdown) {
            (Format::Table, _) => (self.page)(self.record).plain(),
            (Format::Markdown, None) => (self.page)(self.record).markdown(),
            (Format::Markdown, Some(markdown)) => markdown(self.record),
            (Format::Json, _) => reports::json(self.record),
            (Format::Csv, _) => (self.csv)(self.record),
        }
    }
}

impl Output {
    /// Fails early where [`emit`](Self::emit) would fail after all the work.
    ///
    /// # Errors
    /// If a file cannot be made in that folder, or the path is a folder.
    pub fn check(&self) -> Result<()> {
        self.out.as_deref().map_or(Ok(()), check_writable)
    }

    /// Writes a record in the form asked for.
    ///
    /// # Errors
    /// As [`write_output`].
    pub fn emit<R: Serialize>(&self, forms: &Forms<'_, R>) -> Result<()> {
        write_output(&forms.text(self.format), self.out.as_deref())
    }
}

/// Writes to the file, or to standard output where none is named. The file appears whole or not at all: it is written
/// beside its place, then renamed.
///
/// # Errors
/// If the folder cannot be written, the disk is full, or standard output is closed.
pub fn write_output(text: &str, out: Option<&Path>) -> Result<()> {
    let Some(path) = out else {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(printable(text).as_bytes())?;
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
