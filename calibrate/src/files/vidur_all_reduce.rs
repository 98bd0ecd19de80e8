//! All-reduce, as Vidur profiles it.

use roofline::{AllReduce, Kernel, RooflineError};

use crate::files::kind::{CsvLine, FileKind, Found, MS};

pub(crate) const KIND: FileKind = FileKind {
    source: "vidur all-reduce",
    columns: &["time_stats.all_reduce.median", "num_workers"],
    read,
};

fn read(line: &CsvLine, found: &mut Found) -> Result<(), RooflineError> {
    let gpus = line.number("num_workers")?;
    // Groups over several nodes go over another network.
    if gpus <= line.number("devices_per_node")? {
        let bytes = line.number("size")?;
        let kernel = Kernel::AllReduce(AllReduce { bytes, gpus });
        let seconds = line.seconds("time_stats.all_reduce.median", MS)?;
        found.kernel(line.gpu_of_file()?, "", kernel, seconds);
    }
    Ok(())
}
