//! Which leaves a session used last.

use policy_api::NodeId;
use rustc_hash::FxHashMap;

use crate::parts::node_table::NodeTable;

/// Leaves and the sessions that used them last, to be looked up either way.
#[derive(Default)]
pub(super) struct SessionLeaves {
    leaves_of: FxHashMap<u64, Vec<NodeId>>,
    owners: NodeTable<u64>,
}

impl SessionLeaves {
    /// Notes whose a leaf is, or that it is nobody's.
    pub(super) fn give(&mut self, id: NodeId, session: Option<u64>) {
        let former = self.owners.remove(id);
        if let Some(former) = former.filter(|former| Some(*former) != session)
            && let Some(leaves) = self.leaves_of.get_mut(&former)
        {
            leaves.retain(|leaf| *leaf != id);
            if leaves.is_empty() {
                self.leaves_of.remove(&former);
            }
        }
        if let Some(session) = session {
            self.owners.put(id, session);
            if former != Some(session) {
                self.leaves_of.entry(session).or_default().push(id);
            }
        }
    }

    /// All leaves of a session, which are nobody's from now on.
    pub(super) fn take(&mut self, session: u64) -> Vec<NodeId> {
        let leaves = self.leaves_of.remove(&session).unwrap_or_default();
        for id in &leaves {
            self.owners.remove(*id);
        }
        leaves
    }
}
