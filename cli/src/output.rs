//! Output that is whole or not there.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

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
    let mut file = temporary_beside(path).with_context(context)?;
    file.write_all(text.as_bytes()).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}

/// Fails early where [`write_output`] would fail after all the work.
///
/// # Errors
/// If a file cannot be made in that folder, or the path is a folder.
pub fn check_writable(path: &Path) -> Result<()> {
    let context = || format!("cannot write {}", path.display());
    if path.is_dir() {
        anyhow::bail!("cannot write {}: it is a folder", path.display());
    }
    temporary_beside(path).map(drop).with_context(context)
}

fn temporary_beside(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // A temporary file is private by default; this one becomes an ordinary output file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder.tempfile_in(folder)
}
