//! Prefill chunks on cached prefixes, and decode steps, as LLMServingSim publishes them.

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, Found, US};
use crate::files::shapes::BatchHeads;

pub(crate) const KIND: FileKind = FileKind {
    source: "llmservingsim attention",
    columns: &["prefill_chunk", "kv_prefill", "n_decode", "time_us"],
    read,
};

/// Lines that mix both phases in one launch are left out.
fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let (new, cached) = (line.number("prefill_chunk")?, line.number("kv_prefill")?);
    let (sequences, context) = (line.number("n_decode")?, line.number("kv_decode")?);
    let kernel = match (new > 0.0, sequences > 0.0) {
        (true, false) => BatchHeads::of_file(line, 1.0)?.prefill(new, cached),
        (false, true) => BatchHeads::of_file(line, sequences)?.decode(context),
        _ => return Ok(()),
    };
    let seconds = line.seconds("time_us", US)?;
    found.kernel(line.gpu_of_file()?, &line.file_name.model, kernel, seconds);
    Ok(())
}
