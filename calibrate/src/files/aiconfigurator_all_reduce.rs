//! NCCL's collectives, as aiconfigurator publishes them; only all-reduce is read.

use roofline::{AllReduce, Kernel, RooflineError};

use crate::files::kind::{CsvLine, FileKind, Found, MS};

pub(crate) const KIND: FileKind = FileKind {
    source: "aiconfigurator nccl",
    columns: &["nccl_dtype", "message_size"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    if line.text("op_name")? != "all_reduce" {
        return Ok(());
    }
    let half = line.text("nccl_dtype")? == "half";
    let element_bytes = if half { 2.0 } else { 1.0 };
    let kernel = Kernel::AllReduce(AllReduce {
        bytes: line.number("message_size")? * element_bytes,
        gpus: line.number("num_gpus")?,
    });
    let seconds = line.seconds("latency", MS)?;
    found.kernel(line.gpu_in("device")?, "", kernel, seconds);
    Ok(())
}
