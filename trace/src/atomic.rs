//! Output files that appear whole or not at all.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// The temporary files of this process, for [`remove_unfinished`].
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A path that stands in `UNFINISHED` as long as this lives.
#[derive(Debug)]
struct Listed(PathBuf);

impl Listed {
    fn new(path: &Path) -> Self {
        unfinished().insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

/// Removes the temporary files of all [`AtomicFile`]s that are neither committed nor dropped: for a process that is
/// interrupted and will not drop them.
pub fn remove_unfinished() {
    for path in unfinished().iter() {
        // The process is about to end: there is nobody left to tell.
        let _ = std::fs::remove_file(path);
    }
}

/// A file written beside its target under a temporary name, renamed by [`AtomicFile::commit`], deleted if dropped
/// before.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    file: NamedTempFile,
    /// Dropped after the file.
    _listed: Listed,
}

impl AtomicFile {
    /// Starts a file that will become `path`, replacing what is there.
    ///
    /// # Errors
    /// Where the folder does not exist or cannot be written, or `path` names something that is not a plain file.
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(io::Error::other("the name of a folder, not of a file"));
        }
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
        let _listed = Listed::new(file.path());
        Ok(Self {
            target,
            file,
            _listed,
        })
    }

    /// What was written, to read again or to mend.
    pub(crate) fn as_file(&mut self) -> &mut File {
        self.file.as_file_mut()
    }

    /// Gives the file its final name.
    ///
    /// # Errors
    /// Where it cannot be renamed; nothing is left behind then.
    pub fn commit(self) -> io::Result<()> {
        if let Ok(replaced) = std::fs::metadata(&self.target) {
            keep_owner(self.file.path(), &replaced);
            // A mode that cannot be kept is no reason to lose what was written.
            let _ = std::fs::set_permissions(self.file.path(), replaced.permissions());
        }
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

/// Gives a file the owner and group of the one that it replaces, where the user may.
#[cfg(unix)]
fn keep_owner(path: &Path, replaced: &std::fs::Metadata) {
    use std::os::unix::fs::{MetadataExt, chown};
    let _ = chown(path, Some(replaced.uid()), Some(replaced.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &std::fs::Metadata) {}

#[cfg(not(unix))]
fn temporary(prefix: &std::ffi::OsStr, folder: &Path) -> io::Result<NamedTempFile> {
    Builder::new()
        .prefix(prefix)
        .suffix(".tmp")
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("private");
        std::fs::write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(
            (mode & 0o777, std::fs::read(&path).unwrap()),
            (0o600, b"new".to_vec())
        );
    }

    #[test]
    fn a_folder_is_no_name_of_a_file() {
        assert!(AtomicFile::create(Path::new("none/")).is_err());
    }

    #[test]
    fn an_interrupt_leaves_nothing_and_keeps_what_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let done = AtomicFile::create(&folder.path().join("done")).unwrap();
        done.commit().unwrap();
        let mut file = AtomicFile::create(&folder.path().join("half")).unwrap();
        file.write_all(b"half of it").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        remove_unfinished();
        let names: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["done"]);
    }
}
