//! Parquet files of other makers, for importers.

use std::path::Path;

use parquet::file::reader::SerializedFileReader;

use crate::error::TraceError;
use crate::guard::{guarded, open_parquet};

/// The rows of any Parquet file, each as a JSON object; nested lists and structs become arrays and objects.
///
/// # Errors
/// Where the file cannot be read or is not Parquet; so may every row.
pub fn json_rows(
    path: &Path,
) -> Result<impl Iterator<Item = Result<String, TraceError>>, TraceError> {
    let owned = path.to_owned();
    let mut rows = guarded(path, || {
        let reader = SerializedFileReader::new(open_parquet(path)?.0)
            .map_err(|fault| TraceError::not_parquet(path, &fault))?;
        Ok(reader.into_iter())
    })?;
    let mut failed = false;
    Ok(std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let row = guarded(&owned, || match rows.next() {
            None => Ok(None),
            Some(Ok(row)) => Ok(Some(row.to_json_value().to_string())),
            Some(Err(fault)) => Err(TraceError::not_parquet(&owned, &fault)),
        });
        failed = row.is_err();
        row.transpose()
    }))
}
