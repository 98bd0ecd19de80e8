//! Prefill chunks on cached prefixes, in the wider table of LLMServingSim.

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, Found, MS};
use crate::files::shapes::BatchHeads;

pub(crate) const KIND: FileKind = FileKind {
    source: "llmservingsim attention",
    columns: &["prefill_chunk_size", "kv_cache_size", "is_prefill"],
    read,
};

/// `kv_cache_size` counts the chunk's own tokens too: times step where it passes a multiple of 64.
fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let gpus = line.number("num_tensor_parallel_workers")?;
    let all_heads = line.number("n_q_head")?;
    let heads = BatchHeads {
        batch: line.number("batch_size")?,
        heads: all_heads / gpus,
        kv_heads: line.number("n_kv_head")? / gpus,
        head_dim: line.number("n_embd")? / all_heads,
    };
    let new = line.number("prefill_chunk_size")?;
    let context = line.number("kv_cache_size")?;
    if context < new {
        let problem = "is smaller than the chunk, which it includes";
        return Err(line.error("kv_cache_size", problem));
    }
    let seconds = line.seconds("time_stats.attn_prefill.median", MS)?;
    let kernel = heads.prefill(new, context - new);
    found.kernel(line.gpu_of_file()?, &line.file_name.model, kernel, seconds);
    Ok(())
}
