//! Attention of both phases, as aiconfigurator publishes it.

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, Found, MS};
use crate::files::shapes::BatchHeads;

pub(crate) const KIND: FileKind = FileKind {
    source: "aiconfigurator attention",
    columns: &["isl", "step", "num_key_value_heads"],
    read,
};

/// A single query after `step` tokens is a decode step.
fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let (new_tokens, step) = (line.number("isl")?, line.number("step")?);
    let heads = BatchHeads {
        batch: line.number("batch_size")?,
        heads: line.number("num_heads")?,
        kv_heads: line.number("num_key_value_heads")?,
        head_dim: line.number("head_dim")?,
    };
    let kernel = if new_tokens == 1.0 && step > 0.0 {
        heads.decode(new_tokens + step)
    } else {
        heads.prefill(new_tokens, step)
    };
    let seconds = line.seconds("latency", MS)?;
    found.kernel(line.gpu_in("device")?, "", kernel, seconds);
    Ok(())
}
