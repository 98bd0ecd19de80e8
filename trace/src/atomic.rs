//! Output files that appear whole or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file written beside its target under a temporary name, renamed by [`AtomicFile::commit`], deleted if dropped
/// before.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    file: NamedTempFile,
}

impl AtomicFile {
    /// Starts a file that will become `path`, replacing what is there.
    ///
    /// # Errors
    /// Where the folder does not exist or cannot be written, or `path` names something that is not a plain file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let target = match std::fs::metadata(path) {
            Ok(found) if found.is_file() => path.canonicalize()?,
            Ok(_) => return Err(io::Error::other("not a plain file, so not replaced")),
            Err(_) => path.to_owned(),
        };
        let name = target
            .file_name()
            .ok_or_else(|| io::Error::other("not the name of a file"))?;
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut prefix = std::ffi::OsString::from(".");
        prefix.push(name);
        prefix.push(".");
        let file = temporary(&prefix, folder)?;
        Ok(Self { target, file })
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    /// Where it cannot be renamed; nothing is left behind then.
    pub fn commit(self) -> io::Result<()> {
        self.file
            .persist(&self.target)
            .map(|_: File| ())
            .map_err(|failed| failed.error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A temporary file with the permissions of any new file: the crate's default is private to the user.
#[cfg(unix)]
fn temporary(prefix: &std::ffi::OsStr, folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    Builder::new()
        .prefix(prefix)
        .suffix(".tmp")
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

#[cfg(not(unix))]
fn temporary(prefix: &std::ffi::OsStr, folder: &Path) -> io::Result<NamedTempFile> {
    Builder::new()
        .prefix(prefix)
        .suffix(".tmp")
        .tempfile_in(folder)
}
