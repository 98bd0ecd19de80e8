//! Runs the real binaries, in folders that go away with the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const ORACLE: &str = env!("CARGO_BIN_EXE_oracle");
pub(crate) const REPLAY: &str = env!("CARGO_BIN_EXE_replay");
pub(crate) const ROOFLINE: &str = env!("CARGO_BIN_EXE_roofline");
pub(crate) const TRACE_GEN: &str = env!("CARGO_BIN_EXE_trace-gen");

pub(crate) fn run(binary: &str, folder: &Path, args: &[&str]) -> Output {
    Command::new(binary)
        .current_dir(folder)
        .args(args)
        .output()
        .unwrap()
}

/// What a run that must succeed prints.
pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a run says besides.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The error of a run that fails with this code and prints nothing else.
pub(crate) fn failure(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    stderr(output)
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

/// The example trace of the repository.
pub(crate) fn example() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agent.parquet");
    path.canonicalize().unwrap()
}

/// A folder with `ledger.parquet` in it.
pub(crate) fn ledger() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let made = run(
        TRACE_GEN,
        folder.path(),
        &["ledger", "-o", "ledger.parquet"],
    );
    assert!(made.status.success(), "{made:?}");
    folder
}

pub(crate) fn files_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
