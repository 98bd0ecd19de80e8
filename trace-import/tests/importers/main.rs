//! Importers and exporters, run as a caller runs them: real data, small cases of every format, what is refused.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod damaged;
mod exports;
mod formats;
mod inputs;
mod real;

use std::path::{Path, PathBuf};

use params::Params;
use tempfile::TempDir;
use trace::{LoadOptions, Request, Workload, load};
use trace_import::ImportError;
use trace_import::Imported;
use trace_import::import::{FORMATS, ImportJob};

/// A folder for one test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn try_import(
    format: &str,
    input: &Path,
    out: &Path,
    options: &[(&str, &str)],
    strict: bool,
) -> Result<Imported, ImportError> {
    let format = FORMATS.iter().find(|known| known.name == format).unwrap();
    let mut params = Params::new(format.options);
    for (name, value) in options {
        params.set(name, value)?;
    }
    ImportJob {
        format,
        input,
        out,
        strict,
        params,
        progress: &mut |_, _| {},
    }
    .run()
}

/// Imports what must be importable; what it says, line by line.
fn import(format: &str, input: &Path, out: &Path, options: &[(&str, &str)]) -> String {
    let imported = try_import(format, input, out, options, false).unwrap();
    let notes = imported.notes.iter().map(|note| format!("{note}\n"));
    format!(
        "{} requests, {} sessions\n{}",
        imported.requests,
        imported.sessions,
        notes.collect::<String>()
    )
}

fn imported(format: &str, name: &str, text: &str, options: &[(&str, &str)]) -> (String, Workload) {
    let folder = Folder::new();
    let input = folder.file(name, text);
    let out = folder.path("out.parquet");
    let given = import(format, &input, &out, options);
    (given, workload(&out, None))
}

fn workload(path: &Path, block_tokens: Option<u32>) -> Workload {
    let options = LoadOptions {
        block_tokens,
        ..LoadOptions::default()
    };
    load(path, &options).unwrap().workload
}

fn column<T>(workload: &Workload, of: impl Fn(&Request) -> T) -> Vec<T> {
    workload.requests().iter().map(of).collect()
}

fn arrivals_ms(workload: &Workload) -> Vec<i64> {
    column(workload, |request| request.arrival_us / 1_000)
}

/// A file or folder of the optional test data, which lies beside the repository.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/data")
        .join(name);
    if !path.exists() {
        eprintln!("skipped: no ../shared");
        return None;
    }
    Some(path)
}
