//! Whole prefills of Llama-2-70B, as Splitwise publishes them.

use roofline::RooflineError;

use crate::files::kind::{CsvLine, FileKind, Found, MS};
use crate::measurement::TimedWork;

pub(crate) const KIND: FileKind = FileKind {
    source: "splitwise",
    columns: &["prompt_time", "tensor_parallel", "prompt_size"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let count = |column: &str| line.number(column).map(|n| n as u32);
    let (gpus, batch) = (count("tensor_parallel")?, count("batch_size")?);
    let prompt_tokens = count("prompt_size")?;
    // Batches of 64 on 2 GPUs took an eighth of the time of those of 32: they cannot have run whole.
    if gpus == 2 && batch == 64 {
        return Ok(());
    }
    let model = match line.text("model")? {
        "llama2-70b" => "llama-2-70b",
        other => return Err(line.error("model", &format!("is \"{other}\", not llama2-70b"))),
    };
    let work = TimedWork::Prefill {
        gpus,
        batch,
        prompt_tokens,
    };
    let seconds = line.seconds("prompt_time", MS)?;
    found.push(line.gpu_in("hardware")?, model, work, seconds);
    Ok(())
}
