//! Operators of a layer by name, as LLMServingSim publishes them.

use roofline::{Gemm, Kernel, RooflineError};

use crate::files::kind::{CsvLine, FileKind, Found, US};
use crate::files::shapes::{BatchHeads, elementwise, intermediate_of_file};

pub(crate) const KIND: FileKind = FileKind {
    source: "llmservingsim layers",
    columns: &["layer", "tokens", "time_us"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let seconds = line.seconds("time_us", US)?;
    let kernel = operator(line, line.text("layer")?, line.number("tokens")?)?;
    push(line, found, kernel, seconds)
}

pub(crate) fn push(
    line: &CsvLine,
    found: &mut Found,
    kernel: Option<Kernel>,
    seconds: f64,
) -> Result<(), RooflineError> {
    if let Some(kernel) = kernel {
        found.kernel(line.gpu_of_file()?, &line.file_name.model, kernel, seconds);
    }
    Ok(())
}

/// The kernel of an operator. Norms and rotary embedding are left out: one file runs them unfused.
pub(crate) fn operator(
    line: &CsvLine,
    name: &str,
    tokens: f64,
) -> Result<Option<Kernel>, RooflineError> {
    let hidden = f64::from(line.model_of_file()?.hidden);
    let heads = BatchHeads::of_file(line, 1.0)?;
    let (queries, keys) = (
        heads.heads * heads.head_dim,
        heads.kv_heads * heads.head_dim,
    );
    let inner = intermediate_of_file(line)?;
    let product = |columns, inner| Some(Kernel::Gemm(Gemm::fp16(tokens, columns, inner)));
    Ok(match name {
        "qkv_proj" => product(queries + 2.0 * keys, hidden),
        "q_proj" => product(queries, hidden),
        "k_proj" | "v_proj" => product(keys, hidden),
        "o_proj" => product(hidden, queries),
        "gate_up_proj" => product(2.0 * inner, hidden),
        "gate_proj" | "up_proj" => product(inner, hidden),
        "down_proj" => product(hidden, inner),
        "act_fn" => Some(elementwise(tokens * 3.0 * inner)),
        _ => None,
    })
}
