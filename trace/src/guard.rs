//! Opening Parquet files that may be damaged or made to harm.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::schema::types::Type;

use crate::error::TraceError;
use crate::panics::catch_panic;

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

/// Stack per byte of the footer. The decoder recurses once per level of nesting, and a level takes some 8 bytes.
const STACK_PER_FOOTER_BYTE: usize = 1 << 9;
const LEAST_STACK_BYTES: usize = 8 << 20;

/// The largest footer that is decoded: its stack is 2 GiB of address space, of which only what is used is memory.
const MAX_FOOTER_BYTES: u64 = 4 << 20;

/// Opens a Parquet file and decodes its footer, on a thread whose stack suffices for whatever the footer nests.
pub(crate) fn open_parquet(path: &Path) -> Result<(File, ArrowReaderMetadata), TraceError> {
    let (file, length) = open_ends(path)?;
    let footer_bytes = footer_bytes(path, &file)?;
    if footer_bytes > MAX_FOOTER_BYTES || footer_bytes > length {
        let reason =
            format!("its footer has {footer_bytes} bytes; expected at most {MAX_FOOTER_BYTES}");
        return Err(TraceError::not_parquet(path, &reason));
    }
    let stack_bytes = LEAST_STACK_BYTES + STACK_PER_FOOTER_BYTE * footer_bytes as usize;
    let decode = || guarded(path, || decode_footer(path, &file));
    let footer = std::thread::scope(|scope| {
        let decoder = std::thread::Builder::new()
            .stack_size(stack_bytes)
            .spawn_scoped(scope, decode)
            .map_err(|fault| TraceError::io(path, fault))?;
        decoder
            .join()
            .map_err(|_| TraceError::not_parquet(path, &"damaged: the decoder gave up"))?
    })?;
    Ok((file, footer))
}

fn footer_bytes(path: &Path, mut file: &File) -> Result<u64, TraceError> {
    let io = |fault| TraceError::io(path, fault);
    let mut bytes = [0; 4];
    file.seek(SeekFrom::End(-8)).map_err(io)?;
    file.read_exact(&mut bytes).map_err(io)?;
    file.rewind().map_err(io)?;
    Ok(u64::from(u32::from_le_bytes(bytes)))
}

/// What nests too deep is dropped here, on this thread, as dropping recurses too.
fn decode_footer(path: &Path, file: &File) -> Result<ArrowReaderMetadata, TraceError> {
    let footer = ArrowReaderMetadata::load(file, ArrowReaderOptions::new())
        .map_err(|fault| TraceError::not_parquet(path, &fault))?;
    let schema = footer.metadata().file_metadata().schema_descr();
    match levels(schema.root_schema()) {
        deep if deep > MAX_LEVELS => {
            let reason = format!("{deep} levels of nested columns; expected at most {MAX_LEVELS}");
            Err(TraceError::not_parquet(path, &reason))
        }
        _ => Ok(footer),
    }
}

/// Levels of a schema, counted without recursion.
fn levels(root: &Type) -> usize {
    let mut waiting = vec![(root, 0)];
    let mut deepest = 0;
    while let Some((field, level)) = waiting.pop() {
        deepest = deepest.max(level);
        if field.is_group() {
            waiting.extend(field.get_fields().iter().map(|inner| (&**inner, level + 1)));
        }
    }
    deepest
}
