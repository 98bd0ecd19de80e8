//! This project's own microbenchmarks (`cuda/`).

use roofline::{Gemm, HostCopy, Kernel, RooflineError, Stream};

use crate::files::kind::{CsvLine, FileKind, Found};
use crate::files::shapes::BatchHeads;

pub(crate) const KIND: FileKind = FileKind {
    source: "microbenchmarks",
    columns: &["operator", "seconds_median"],
    read,
};

/// `operator` decides which of the shape columns hold something.
fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let gpu = line.gpu_in("device")?;
    let n = |column: &str| line.number(column);
    let kernel = match line.text("operator")? {
        "gemm" => Kernel::Gemm(Gemm::fp16(n("rows")?, n("columns")?, n("inner")?)),
        "prefill-attention" => {
            let heads = BatchHeads {
                batch: n("batch")?,
                heads: n("heads")?,
                kv_heads: n("kv_heads")?,
                head_dim: n("head_dim")?,
            };
            heads.prefill(n("new_tokens")?, n("cached_tokens")?)
        }
        "elementwise" => Kernel::Stream(Stream {
            bytes: n("bytes")?,
            flops: 0.0,
        }),
        "host-copy" => Kernel::HostCopy(HostCopy { bytes: n("bytes")? }),
        other => {
            let known = "gemm, prefill-attention, elementwise or host-copy";
            return Err(line.error("operator", &format!("is \"{other}\", not {known}")));
        }
    };
    found.kernel(gpu, "", kernel, line.seconds("seconds_median", 1.0)?);
    Ok(())
}
