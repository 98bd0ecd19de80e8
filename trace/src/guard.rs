//! Opening Parquet files that may be damaged or made to harm.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};

use crate::error::TraceError;
use crate::footer::levels;
use crate::panics::catch_panic;
use crate::seal::read_footer;

/// Runs a step of decoding. The decoder checks most of what it reads, but panics on some damaged files.
pub(crate) fn guarded<T>(
    path: &Path,
    step: impl FnOnce() -> Result<T, TraceError>,
) -> Result<T, TraceError> {
    catch_panic(step).unwrap_or_else(|message| {
        let reason = format!("damaged: the decoder gave up ({message})");
        Err(TraceError::not_parquet(path, &reason))
    })
}

/// Opens a file that begins and ends as Parquet does; says so in plain words where it does not.
fn open_ends(path: &Path) -> Result<(File, u64), TraceError> {
    const MAGIC: [u8; 4] = *b"PAR1";
    let io = |source| TraceError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length == 0 {
        return Err(TraceError::not_parquet(path, &"the file is empty"));
    }
    let mut ends = [[0; 4]; 2];
    if length >= 12 {
        file.read_exact(&mut ends[0]).map_err(io)?;
        file.seek(SeekFrom::End(-4)).map_err(io)?;
        file.read_exact(&mut ends[1]).map_err(io)?;
        file.rewind().map_err(io)?;
    }
    match ends {
        [MAGIC, MAGIC] => Ok((file, length)),
        [MAGIC, _] => Err(TraceError::not_parquet(
            path,
            &"the file is cut short (its footer is missing)",
        )),
        _ => Err(TraceError::not_parquet(
            path,
            &"it does not begin with PAR1; other formats need an import first",
        )),
    }
}

/// Levels of nested columns that a file may have: far more than any trace has.
const MAX_LEVELS: usize = 64;

/// The largest footer that is decoded: that of a trace of terabytes.
const MAX_FOOTER_BYTES: u64 = 64 << 20;

/// Opens a Parquet file and decodes its footer, once it is known not to nest too deep for the decoder.
pub(crate) fn open_parquet(path: &Path) -> Result<(File, ArrowReaderMetadata), TraceError> {
    let io = |fault| TraceError::io(path, fault);
    let damaged = |reason: String| TraceError::not_parquet(path, &reason);
    let (mut file, length) = open_ends(path)?;
    let footer_bytes = footer_bytes(path, &file)?;
    if footer_bytes > MAX_FOOTER_BYTES || footer_bytes > length {
        return Err(damaged(format!(
            "its footer has {footer_bytes} bytes; expected at most {}",
            MAX_FOOTER_BYTES.min(length)
        )));
    }
    let footer = read_footer(&mut file, length).map_err(io)?;
    file.rewind().map_err(io)?;
    match levels(&footer) {
        None => return Err(damaged("its footer is damaged".to_owned())),
        Some(deep) if deep > MAX_LEVELS => {
            return Err(damaged(format!(
                "{deep} levels of nested columns; expected at most {MAX_LEVELS}"
            )));
        }
        Some(_) => {}
    }
    let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
        .map_err(|fault| TraceError::not_parquet(path, &fault))?;
    Ok((file, footer))
}

fn footer_bytes(path: &Path, mut file: &File) -> Result<u64, TraceError> {
    let io = |fault| TraceError::io(path, fault);
    let mut bytes = [0; 4];
    file.seek(SeekFrom::End(-8)).map_err(io)?;
    file.read_exact(&mut bytes).map_err(io)?;
    Ok(u64::from(u32::from_le_bytes(bytes)))
}
