//! What several policies are made of.

pub(crate) mod aging;
pub(crate) mod chances;
pub(crate) mod density;
pub(crate) mod ghosts;
pub(crate) mod greedy_clock;
pub(crate) mod groups;
pub(crate) mod indexed_set;
pub(crate) mod keyed;
pub(crate) mod leaf_lru;
pub(crate) mod newcomers_last;
pub(crate) mod node_table;
pub(crate) mod per_request;
pub(crate) mod request_order;
pub(crate) mod room;
pub(crate) mod shadow_lru;
pub(crate) mod sketch;
pub(crate) mod survival;
pub(crate) mod two_orders;
