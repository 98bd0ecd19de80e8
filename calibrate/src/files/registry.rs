//! The kinds of measurement files, and reading one of any kind.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, FileName, Found, GpuNames};
use crate::files::{
    aiconfigurator_all_reduce, aiconfigurator_attention, aiconfigurator_gemm,
    llmservingsim_attention, llmservingsim_chunks, llmservingsim_layers, llmservingsim_layers_ns,
    microbenchmarks, splitwise, vidur_all_reduce, vidur_layers,
};
use crate::measurement::Measurement;

/// A file is of the first kind whose columns it has.
const KINDS: &[FileKind] = &[
    microbenchmarks::KIND,
    aiconfigurator_gemm::KIND,
    aiconfigurator_attention::KIND,
    aiconfigurator_all_reduce::KIND,
    vidur_layers::KIND,
    vidur_all_reduce::KIND,
    llmservingsim_attention::KIND,
    llmservingsim_chunks::KIND,
    llmservingsim_layers::KIND,
    llmservingsim_layers_ns::KIND,
    splitwise::KIND,
];

/// Reads a measurement file, CSV or CSV compressed with Zstandard. Its columns tell what kind of file it is.
///
/// Shapes that were measured several times, in this file or in the line's repeats, are all returned.
///
/// # Errors
/// [`RooflineError::Read`], or [`RooflineError::Invalid`] with file, line, column and what was expected.
pub fn read_measurements(path: &Path) -> Result<Vec<Measurement>, RooflineError> {
    let place = path.display().to_string();
    let invalid = |e: csv::Error| RooflineError::invalid(&place, e.to_string());
    let mut reader = csv::Reader::from_reader(open(path)?);
    let header = reader.headers().map_err(invalid)?.clone();
    let has = |column: &&str| header.iter().any(|h| h == *column);
    let kind = KINDS.iter().find(|kind| kind.columns.iter().all(has));
    let kind = kind.ok_or_else(|| RooflineError::invalid(&place, not_recognised()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let gpus = GpuNames::presets()?;
    let file_name = FileName::parse(&name, &gpus)?;
    let mut found = Found {
        source: kind.source,
        measurements: Vec::new(),
    };
    for record in reader.records() {
        let line = CsvLine {
            place: &place,
            header: &header,
            record: &record.map_err(invalid)?,
            file_name: &file_name,
            gpus: &gpus,
        };
        (kind.read)(&line, &mut found)?;
    }
    Ok(found.measurements)
}

fn open(path: &Path) -> Result<Box<dyn Read>, RooflineError> {
    let failed = |source| RooflineError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    Ok(if path.extension().is_some_and(|e| e == "zst") {
        Box::new(zstd::Decoder::new(file).map_err(failed)?)
    } else {
        Box::new(file)
    })
}

fn not_recognised() -> String {
    let known: Vec<_> = KINDS
        .iter()
        .map(|kind| format!("{} ({})", kind.source, kind.columns.join(", ")))
        .collect();
    let known = known.join("; ");
    format!("the columns fit none of the known measurement files: {known}")
}
