//! Operators of a layer by name, in LLMServingSim's table with nanoseconds.

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, Found, NS};
use crate::files::llmservingsim_layers::{operator, push};

pub(crate) const KIND: FileKind = FileKind {
    source: "llmservingsim layers",
    columns: &["layer_name", "input", "latency(ns)"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let seconds = line.seconds("latency(ns)", NS)?;
    let kernel = operator(line, line.text("layer_name")?, line.number("input")?)?;
    push(line, found, kernel, seconds)
}
