//! Admission policies: what comes in. One file each.

pub(crate) mod adaptive;
pub(crate) mod all;
pub(crate) mod branch_points;
pub(crate) mod checkpoint_every;
pub(crate) mod lmcache;
pub(crate) mod marconi;
pub(crate) mod none;
pub(crate) mod second_occurrence;
pub(crate) mod size_cap;
pub(crate) mod tinylfu;
