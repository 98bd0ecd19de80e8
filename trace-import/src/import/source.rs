//! Reading text files, packed or not, and folders of them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

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

/// Opens a file, unpacked if its name ends in `.zst`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, ImportError> {
    let file = File::open(path).map_err(|source| ImportError::io(path, source))?;
    let packed = path.extension().is_some_and(|extension| extension == "zst");
    if !packed {
        return Ok(Box::new(BufReader::new(file)));
    }
    let unpacked = zstd::Decoder::new(file).map_err(|source| ImportError::io(path, source))?;
    Ok(Box::new(BufReader::new(unpacked)))
}

/// The whole text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, ImportError> {
    let mut text = String::new();
    open(path)?
        .read_to_string(&mut text)
        .map_err(|source| ImportError::io(path, source))?;
    Ok(text)
}

/// The lines of a file that are not blank, numbered from 1.
pub(crate) fn lines(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(usize, String), ImportError>>, ImportError> {
    let owned = path.to_owned();
    let lines = open(path)?.lines().enumerate();
    Ok(lines
        .map(move |(index, line)| {
            let number = index + 1;
            line.map(|line| (number, line))
                .map_err(|fault| ImportError::Input {
                    path: owned.clone(),
                    problem: format!("line {number}: {fault}"),
                })
        })
        .filter(|line| !matches!(line, Ok((_, text)) if text.trim().is_empty())))
}
