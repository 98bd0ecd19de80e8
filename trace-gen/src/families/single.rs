//! The families of one kind of session. The mixture draws from them, so it is not among them.

use super::{agent, cron, fanout, mapreduce, multi_agent, oneshot, rag, scan, version_roll};
use crate::family::Family;

/// In the order of the command's help.
pub(crate) const SINGLE: &[&Family] = &[
    &agent::AGENT,
    &agent::CHAT,
    &fanout::FAMILY,
    &mapreduce::FAMILY,
    &multi_agent::FAMILY,
    &rag::FAMILY,
    &oneshot::FAMILY,
    &cron::FAMILY,
    &scan::FAMILY,
    &version_roll::FAMILY,
];
