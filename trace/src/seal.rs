//! The checksum of a whole trace file, kept in its own metadata.
//!
//! The Parquet writer at hand writes no page checksums, and a footer has none in any file. So the metadata holds the hash of
//! the file as it is with zeros in place of the hash.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use xxhash_rust::xxh3::Xxh3Default;

/// The metadata key of the hash.
pub(crate) const KEY_SEAL: &str = "trace.xxh3";

/// What the footer names as the program that wrote the file. Such a file must have a hash, so that damage to the key
/// itself is noticed.
pub(crate) const SEALED_BY: &str = "prefix-replay (sealed), parquet-rs";

/// Hexadecimal digits of a hash.
const DIGITS: usize = 16;

/// What stands in place of the hash while it is computed.
pub(crate) const UNSEALED: &str = "0000000000000000";

/// Bytes after the footer: its length, and the magic number.
const TAIL_BYTES: u64 = 8;

const BUFFER_BYTES: usize = 1 << 18;

/// The hashes of a file.
pub(crate) struct FileHash {
    /// Of its bytes.
    pub(crate) xxh3: u64,
    /// Whether its seal is right; `None` where it has none.
    pub(crate) intact: Option<bool>,
}

/// Reads a file from its beginning to its end.
pub(crate) fn hash_file(file: &mut File) -> io::Result<FileHash> {
    let place = place(file)?;
    file.rewind()?;
    let mut hasher = Xxh3Default::new();
    let Some(place) = place else {
        update(file, &mut [&mut hasher])?;
        return Ok(FileHash {
            xxh3: hasher.digest(),
            intact: None,
        });
    };
    update(&mut Read::take(&mut *file, place), &mut [&mut hasher])?;
    let mut unsealed = hasher.clone();
    let mut digits = [0; DIGITS];
    file.read_exact(&mut digits)?;
    hasher.update(&digits);
    unsealed.update(UNSEALED.as_bytes());
    update(file, &mut [&mut hasher, &mut unsealed])?;
    let expected = format!("{:016x}", unsealed.digest());
    Ok(FileHash {
        xxh3: hasher.digest(),
        intact: Some(digits == expected.as_bytes()),
    })
}

/// Writes the hash into a file whose metadata has [`UNSEALED`] in its place.
pub(crate) fn seal(file: &mut File) -> io::Result<()> {
    let place = place(file)?.ok_or_else(|| io::Error::other("no place for the checksum"))?;
    file.rewind()?;
    let mut hasher = Xxh3Default::new();
    update(file, &mut [&mut hasher])?;
    file.seek(SeekFrom::Start(place))?;
    write!(file, "{:016x}", hasher.digest())
}

fn update(from: &mut impl Read, hashers: &mut [&mut Xxh3Default]) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            read => hashers
                .iter_mut()
                .for_each(|hasher| hasher.update(&buffer[..read])),
        }
    }
}

/// Where in the file the digits of its hash are.
fn place(file: &mut File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    let footer = read_footer(file, length)?;
    // A key and a value as Thrift's compact protocol writes them: type and field, length, bytes.
    let mark = [KEY_SEAL.as_bytes(), &[0x18, DIGITS as u8]].concat();
    let found = footer
        .windows(mark.len() + DIGITS)
        .rposition(|window| window.starts_with(&mark));
    let start = length - TAIL_BYTES.min(length) - footer.len() as u64;
    Ok(found.map(|at| start + (at + mark.len()) as u64))
}

/// The bytes of a Parquet footer; none of a file that is too short for what it says.
pub(crate) fn read_footer(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    if length < TAIL_BYTES {
        return Ok(Vec::new());
    }
    let mut bytes = [0; 4];
    file.seek(SeekFrom::Start(length - TAIL_BYTES))?;
    file.read_exact(&mut bytes)?;
    let footer_bytes = u64::from(u32::from_le_bytes(bytes));
    let Some(start) = (length - TAIL_BYTES).checked_sub(footer_bytes) else {
        return Ok(Vec::new());
    };
    file.seek(SeekFrom::Start(start))?;
    let mut footer = vec![0; footer_bytes as usize];
    file.read_exact(&mut footer)?;
    Ok(footer)
}
