//! What prefilling a prompt costs when a prefix of it is cached: one file per kind of cost model, and the registry.

pub(crate) mod constant;
pub(crate) mod entry;
pub(crate) mod registry;
pub(crate) mod roofline;
