//! Admission policies: how much of a path is admitted. One file each, in the order of the registry: to add one, add its line
//! here.

use crate::entry::AdmissionEntry;

pub(crate) mod all;
mod none;
mod second_occurrence;
mod branch_points;
mod tinylfu;
mod lmcache;
mod size_cap;
mod adaptive;
pub(crate) mod marconi;
mod checkpoint_every;

/// All admission policies, the default first.
pub const ADMISSION: &[AdmissionEntry] = include!(concat!(env!("OUT_DIR"), "/admission.rs"));
