//! Matrix products, as aiconfigurator publishes them.

use roofline::{Gemm, Kernel, RooflineError};

use crate::files::kind::{CsvLine, FileKind, Found, MS};

pub(crate) const KIND: FileKind = FileKind {
    source: "aiconfigurator gemm",
    columns: &["gemm_dtype", "m", "n", "k"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let product = Gemm::fp16(line.number("m")?, line.number("n")?, line.number("k")?);
    let seconds = line.seconds("latency", MS)?;
    found.kernel(line.gpu_in("device")?, "", Kernel::Gemm(product), seconds);
    Ok(())
}
