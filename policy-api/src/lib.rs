//! The contract between the cache and a policy, and its nouns.
//!
//! The hard choice: **the cache asks, the policy answers.** A policy never touches the tree. It hears which nodes are evictable
//! ([`Candidate`]s), names one when the cache is over its capacity, and says how much of a path may be resident. The cache
//! carries the answer out, checks it, and reports a wrong one as a [`PolicyFault`]. So no policy can leave a hole in a prefix,
//! free what is pinned, or exceed the capacity, and a policy is a page of code about one idea.
//!
//! A policy hears of *nodes*, not of blocks. A node is a stretch of blocks that the same requests touched, so its blocks share
//! every fact that a rule may use. The cache splits a node where a path ends or diverges. A policy is called about eight times
//! per request, never once per block.
//!
//! # One request
//!
//! Two requests, each letter a block. The first made one node `abcd`, a leaf. The second, `abxy`, shares two blocks with it:
//!
//! ```text
//!     abcd          before          ab            after
//!                                  /  \
//!                                 cd   xy
//! ```
//!
//! The calls that the second request causes, in order:
//!
//! 1. [`split`](EvictionPolicy::split): `cd` keeps the id of `abcd`, `ab` gets a new one. [`offer`](EvictionPolicy::offer) of `cd`,
//!    because `abcd` was evictable and its facts have changed. Neither where the path ends or diverges at the end of a node.
//! 2. [`observe`](EvictionPolicy::observe) with the request, before anything of it is offered.
//! 3. [`withdraw`](EvictionPolicy::withdraw) of the path's last resident node, if it was evictable. `ab` was not: it has a child.
//! 4. [`victim`](EvictionPolicy::victim), if the admission policy [needs a rival](AdmissionPolicy::needs_rival); then
//!    [`admit`](AdmissionPolicy::admit).
//! 5. [`offer`](EvictionPolicy::offer) of the path's new last node, `xy`.
//! 6. While the cache is over its capacity: [`victim`](EvictionPolicy::victim), then [`evicted`](EvictionPolicy::evicted), then an
//!    `offer` of what is left of the node, or of a parent that became a leaf.
//!
//! # Requests that overlap
//!
//! Where a request holds a lease of its path while others come and end, its calls lie apart: 1 to 3 when it is looked up, 4 when
//! it reserves room for the first time, 6 before each reservation, and 5 when it ends. In between its nodes are not evictable.
//! [`RequestView::now`] counts all these events; [`RequestView::index`] only names the request.
//!
//! # Checkpoint models
//!
//! A model with state-space layers or sliding windows resumes only where a state was saved. In its cache
//!
//! - a node may have a saved state at its end. A candidate is a leaf node with all that it holds, or the state of a node with
//!   one child ([`CandidateKind`]);
//! - step 3 withdraws every evictable node of the path, and step 5 offers every one of them that is evictable then;
//! - after `admit` the admission policy says [where to save states](AdmissionPolicy::checkpoints), for which nodes may be split;
//! - step 6 evicts whole candidates;
//! - a node with one child and no state is [merged](EvictionPolicy::merge) with it. So a node ends where a state was saved, where
//!   paths part, or where a path ends.
//!
//! # Guests
//!
//! The traits have no generics, closures or associated types, so a WebAssembly guest can implement the same verbs. For the same
//! reason the crate is `no_std`, has no dependencies, and keeps to Rust 1.63.

#![no_std]

extern crate alloc;

mod candidate;
mod cost;
mod fault;
mod ids;
mod in_order;
mod inspect;
mod policy;
mod ranked;
mod request;

pub use candidate::{Candidate, CandidateKind, Victim, WithdrawReason};
pub use cost::{PrefillCost, Score, StateBytes, Work};
pub use fault::PolicyFault;
pub use ids::{BlockId, NodeId, RequestIndex, Tick};
pub use in_order::InOrder;
pub use inspect::{Inspect, PolicyCall};
pub use policy::{AdmissionPolicy, EvictionPolicy, Pair, PathInsertion, Policy};
pub use ranked::Ranked;
pub use request::{Hints, Request, RequestView};
