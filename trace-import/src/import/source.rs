//! Reading text files, packed or not, and folders of them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use trace::MemoryBudget;

use crate::error::ImportError;

/// The file's name without `.zst`.
pub(crate) fn unpacked_name(path: &Path) -> String {
    let name = path.to_string_lossy();
    name.strip_suffix(".zst").unwrap_or(&name).to_owned()
}

/// The files of a folder with one of these endings (or packed as `.zst`), by name; or the one file.
pub(crate) fn files(input: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
    if !input.is_dir() {
        return Ok(vec![input.to_owned()]);
    }
    let entries = std::fs::read_dir(input).map_err(|source| ImportError::io(input, source))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|source| ImportError::io(input, source))?
            .path();
        let name = unpacked_name(&path);
        if endings.iter().any(|ending| name.ends_with(ending)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(ImportError::Input {
            path: input.to_owned(),
            problem: format!("no {} file in this folder", endings.join(" or ")),
        }),
        false => Ok(files),
    }
}

/// Opens a file, unpacked if its name ends in `.zst`. A byte order mark is skipped.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, ImportError> {
    let io = |source| ImportError::io(path, source);
    let file = File::open(path).map_err(io)?;
    let packed_bytes = file.metadata().map_err(io)?.len();
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let mut text: Box<dyn BufRead> = match extension {
        "zst" => {
            let unpacked = zstd::Decoder::new(file).map_err(io)?;
            let most = LEAST_UNPACKED_BYTES + packed_bytes.saturating_mul(HIGHEST_RATIO);
            Box::new(BufReader::new(Limited {
                unpacked,
                left: most,
            }))
        }
        "gz" => {
            return Err(ImportError::Input {
                path: path.to_owned(),
                problem: "packed as .gz, which is not read; unpack it, or pack it as .zst"
                    .to_owned(),
            });
        }
        _ => Box::new(BufReader::new(file)),
    };
    if text
        .fill_buf()
        .map_err(io)?
        .starts_with(BYTE_ORDER_MARK.as_bytes())
    {
        text.consume(BYTE_ORDER_MARK.len());
    }
    Ok(text)
}

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// How many times its size a packed file may unpack to, beside a size that any may have.
const HIGHEST_RATIO: u64 = 1_000;
const LEAST_UNPACKED_BYTES: u64 = 64 << 20;

/// A reader that fails once more was read than its limit.
struct Limited<R> {
    unpacked: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.unpacked.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!(
                "unpacks to more than {HIGHEST_RATIO} times its size; unpack it first if that is right"
            ))
        })?;
        Ok(read)
    }
}

/// Of the memory that an import may take, the part that one line may: what it is parsed into is much larger.
const LINE_SHARE: u64 = 32;

fn longest_line_bytes() -> u64 {
    MemoryBudget::default().limit_bytes() / LINE_SHARE
}

fn too_long(path: &Path, what: &str) -> ImportError {
    ImportError::Input {
        path: path.to_owned(),
        problem: format!(
            "{what} has more than {} MB; allow longer ones with --memory",
            longest_line_bytes() / 1_000_000
        ),
    }
}

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, ImportError> {
    let longest = longest_line_bytes();
    let mut text = String::new();
    open(path)?
        .take(longest + 1)
        .read_to_string(&mut text)
        .map_err(|source| ImportError::io(path, source))?;
    match text.len() as u64 > longest {
        true => Err(too_long(path, "the file")),
        false => Ok(text),
    }
}

/// The lines of a file that are not blank, numbered from 1. After one that cannot be read there are no more.
pub(crate) fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(usize, String), ImportError>>, ImportError> {
    let owned = path.to_owned();
    let mut text = open(path)?;
    let longest = longest_line_bytes();
    let (mut number, mut failed) = (0, false);
    let next = move || {
        if failed {
            return None;
        }
        number += 1;
        let mut line = String::new();
        let outcome = match text.by_ref().take(longest + 1).read_line(&mut line) {
            Ok(0) => return None,
            Ok(read) if read as u64 > longest => Err(too_long(&owned, &format!("line {number}"))),
            Ok(_) => {
                let end = line.trim_end_matches('\n').trim_end_matches('\r').len();
                line.truncate(end);
                Ok((number, line))
            }
            Err(fault) => Err(ImportError::Input {
                path: owned.clone(),
                problem: format!("line {number}: {fault}"),
            }),
        };
        failed = outcome.is_err();
        Some(outcome)
    };
    let lines = std::iter::from_fn(next);
    Ok(lines.filter(|line| !matches!(line, Ok((_, text)) if text.trim().is_empty())))
}
