//! The request trace: types, schema, Parquet in and out, validation; and the per-request result table.
//!
//! A trace file is Parquet, one row a request, sorted by arrival. It holds either tokens (`prompt`, `output`) or ids of
//! full blocks (`prompt_blocks`, `output_blocks`). [`load`] decodes it once into a [`Workload`] with dense block ids,
//! which every run then shares. [`TraceReader`] and [`TraceWriter`] stream rows in bounded memory. This is the only
//! crate that knows Arrow and Parquet.

mod atomic;
mod body;
mod check;
mod columns;
mod decode;
mod error;
mod footer;
mod foreign;
mod guard;
mod load;
mod memory;
mod meta;
mod panics;
mod reader;
mod results;
mod row;
mod schema;
mod seal;
mod stored;
pub mod synthetic;
mod token_paths;
mod workload;
mod writer;

pub use atomic::{AtomicFile, remove_unfinished};
pub use check::LATEST_ARRIVAL_US;
pub use error::TraceError;
pub use foreign::json_rows;
pub use load::{DEFAULT_BLOCK_TOKENS, LoadOptions, Loaded, load};
pub use memory::{MemoryBudget, OverBudget};
pub use meta::{Content, Meta, Provenance};
pub use panics::catch_panic;
pub use policy_api::{BlockId, Hints, Request};
pub use reader::TraceReader;
pub use results::{RequestResult, ResultWriter};
pub use row::{Body, Row, path_blocks, prompt_blocks};
pub use workload::{BuildError, NO_BLOCK, Workload, WorkloadBuilder};
pub use writer::TraceWriter;
