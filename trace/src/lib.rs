//! The request trace: types, schema, Parquet in and out, validation.

mod workload;

pub use policy_api::{BlockId, Hints, Request};
pub use workload::{BuildError, NO_BLOCK, Provenance, Workload, WorkloadBuilder};
