//! The request trace: types, schema, Parquet in and out, validation.

mod workload;

pub use workload::{
    BlockId, BuildError, Hints, NO_BLOCK, Provenance, Request, Workload, WorkloadBuilder,
};
