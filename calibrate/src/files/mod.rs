//! Measurement files: what every reader uses (`kind`), one file per kind, and the registry.
//!
//! A new kind of file is one file with a `KIND` here, and one line in the registry.

pub(crate) mod registry;

mod aiconfigurator_all_reduce;
mod aiconfigurator_attention;
mod aiconfigurator_gemm;
mod kind;
mod llmservingsim_attention;
mod llmservingsim_chunks;
mod llmservingsim_layers;
mod llmservingsim_layers_ns;
mod microbenchmarks;
mod shapes;
mod splitwise;
mod vidur_all_reduce;
mod vidur_layers;
