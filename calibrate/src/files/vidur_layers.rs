//! Operators of one layer, as Vidur profiles them: each in its own column.

use roofline::{Gemm, Kernel, RooflineError};

use crate::files::kind::{CsvLine, FileKind, Found, MS};
use crate::files::shapes::elementwise;

pub(crate) const KIND: FileKind = FileKind {
    source: "vidur layers",
    columns: &["time_stats.mlp_up_proj.median", "use_gated_mlp"],
    read,
};

/// Projections are cut over the GPUs, norms are not.
fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let n = |column: &str| line.number(column);
    let tokens = n("num_tokens")?;
    let hidden = n("n_embd")?;
    let gpus = n("num_tensor_parallel_workers")?;
    let head_dim = hidden / n("n_head")?;
    let queries = hidden / gpus;
    let keys = n("n_kv_head")? * head_dim / gpus;
    let inner = n("n_expanded_embd")? / gpus;
    let gated = line.text("use_gated_mlp")? == "True";
    let inputs = if gated { 2.0 } else { 1.0 };
    let product = |columns, inner| Kernel::Gemm(Gemm::fp16(tokens, columns, inner));
    let stream = |width| elementwise(tokens * width);
    let operators = [
        ("attn_pre_proj", product(queries + 2.0 * keys, hidden)),
        ("attn_post_proj", product(hidden, queries)),
        ("mlp_up_proj", product(inputs * inner, hidden)),
        ("mlp_down_proj", product(hidden, inner)),
        ("input_layernorm", stream(2.0 * hidden)),
        ("post_attention_layernorm", stream(2.0 * hidden)),
        ("attn_rope", stream(2.0 * (queries + keys))),
        ("mlp_act", stream((inputs + 1.0) * inner)),
        ("add", stream(3.0 * hidden)),
    ];
    let gpu = line.gpu_of_file()?;
    for (name, kernel) in operators {
        let column = format!("time_stats.{name}.median");
        // A measured zero is a kernel too short for the clock.
        if n(&column)? > 0.0 {
            let seconds = line.seconds(&column, MS)?;
            let model = &line.file_name.model;
            match kernel {
                Kernel::Stream(_) => found.labelled(gpu, model, (name, kernel), seconds),
                _ => found.kernel(gpu, model, kernel, seconds),
            }
        }
    }
    Ok(())
}
