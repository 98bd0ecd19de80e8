//! A policy that somebody watches.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{
    AdmissionPolicy, Candidate, EvictionPolicy, NodeId, PathInsertion, RequestView, Victim,
    WithdrawReason,
};

/// A call to a policy, with its answer where it has one.
#[derive(Clone, Copy, Debug)]
pub enum PolicyCall<'a> {
    /// [`EvictionPolicy::offer`].
    Offer(&'a Candidate),
    /// [`EvictionPolicy::withdraw`].
    Withdraw(NodeId, WithdrawReason),
    /// [`EvictionPolicy::victim`] and the answer.
    Victim(Option<Victim>),
    /// [`EvictionPolicy::evicted`].
    Evicted {
        /// What was evicted.
        part: &'a Candidate,
        /// Whether the whole node was.
        whole: bool,
    },
    /// [`EvictionPolicy::split`].
    Split {
        /// The new node, the upper part.
        head: NodeId,
        /// The old node, the lower part.
        tail: NodeId,
    },
    /// [`EvictionPolicy::merge`].
    Merge {
        /// The node that is dead now.
        head: NodeId,
        /// The node that took its blocks in.
        tail: NodeId,
        /// How many those are.
        head_blocks: u32,
    },
    /// [`EvictionPolicy::observe`].
    Observe {
        /// The request.
        request: &'a RequestView<'a>,
        /// The resident nodes of its path, where the policy wants them.
        nodes: &'a [Candidate],
    },
    /// [`AdmissionPolicy::admit`] and the answer.
    Admit {
        /// The request.
        request: &'a RequestView<'a>,
        /// What would be evicted first, where the policy needs to know.
        rival: Option<&'a Candidate>,
        /// The answer.
        resident_blocks: u32,
    },
    /// [`AdmissionPolicy::checkpoints`] and the answer.
    Checkpoints {
        /// The request.
        request: &'a RequestView<'a>,
        /// How its path lies in the tree.
        insertion: PathInsertion,
        /// The answer.
        depths: &'a [u32],
    },
    /// [`AdmissionPolicy::on_evicted`].
    OnEvicted(&'a Candidate),
}

/// A policy whose calls are shown to a watcher, each right after the policy has answered it.
///
/// The watcher gets the policy too, so that it can ask it something. It changes nothing else: every verb is passed on.
///
/// ```
/// use policy_api::{EvictionPolicy, Inspect, NodeId, PolicyCall, Victim};
/// # use policy_api::{Candidate, WithdrawReason};
/// # struct Mine;
/// # impl EvictionPolicy for Mine {
/// #     fn offer(&mut self, _: &Candidate) {}
/// #     fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
/// #     fn victim(&mut self) -> Option<Victim> { Some(Victim::node(NodeId(7))) }
/// #     fn evicted(&mut self, _: &Candidate, _: bool) {}
/// # }
/// let mut victims = Vec::new();
/// let mut inspected = Inspect::new(Mine, |_: &mut Mine, call: PolicyCall<'_>| {
///     if let PolicyCall::Victim(Some(victim)) = call {
///         victims.push(victim.id);
///     }
/// });
/// inspected.victim();
/// assert_eq!(victims, [NodeId(7)]);
/// ```
#[derive(Debug)]
pub struct Inspect<P, W> {
    policy: P,
    watcher: W,
}

impl<P, W: FnMut(&mut P, PolicyCall<'_>)> Inspect<P, W> {
    /// A policy and who watches it.
    pub fn new(policy: P, watcher: W) -> Self {
        Self { policy, watcher }
    }

    fn show(&mut self, call: PolicyCall<'_>) {
        (self.watcher)(&mut self.policy, call);
    }
}

impl<P: EvictionPolicy, W: FnMut(&mut P, PolicyCall<'_>)> EvictionPolicy for Inspect<P, W> {
    fn offer(&mut self, candidate: &Candidate) {
        self.policy.offer(candidate);
        self.show(PolicyCall::Offer(candidate));
    }

    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.policy.withdraw(id, why);
        self.show(PolicyCall::Withdraw(id, why));
    }

    fn victim(&mut self) -> Option<Victim> {
        let victim = self.policy.victim();
        self.show(PolicyCall::Victim(victim));
        victim
    }

    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.policy.evicted(evicted, whole);
        self.show(PolicyCall::Evicted {
            part: evicted,
            whole,
        });
    }

    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.policy.split(head, tail);
        self.show(PolicyCall::Split { head, tail });
    }

    fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
        self.policy.merge(head, tail, head_blocks);
        self.show(PolicyCall::Merge {
            head,
            tail,
            head_blocks,
        });
    }

    fn wants_path_nodes(&self) -> bool {
        self.policy.wants_path_nodes()
    }

    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.policy.observe(request, nodes);
        self.show(PolicyCall::Observe { request, nodes });
    }
}

impl<P: AdmissionPolicy, W: FnMut(&mut P, PolicyCall<'_>)> AdmissionPolicy for Inspect<P, W> {
    fn needs_rival(&self) -> bool {
        self.policy.needs_rival()
    }

    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        let resident_blocks = self.policy.admit(request, rival);
        self.show(PolicyCall::Admit {
            request,
            rival,
            resident_blocks,
        });
        resident_blocks
    }

    fn checkpoints(
        &mut self,
        request: &RequestView<'_>,
        insertion: PathInsertion,
        depths: &mut Vec<u32>,
    ) {
        self.policy.checkpoints(request, insertion, depths);
        self.show(PolicyCall::Checkpoints {
            request,
            insertion,
            depths,
        });
    }

    fn on_evicted(&mut self, evicted: &Candidate) {
        self.policy.on_evicted(evicted);
        self.show(PolicyCall::OnEvicted(evicted));
    }
}

/// Passes every verb on to what a pointer points at, so that a borrowed or boxed policy is one.
macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<P: EvictionPolicy + ?Sized> EvictionPolicy for $pointer {
            fn offer(&mut self, candidate: &Candidate) {
                (**self).offer(candidate);
            }

            fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
                (**self).withdraw(id, why);
            }

            fn victim(&mut self) -> Option<Victim> {
                (**self).victim()
            }

            fn evicted(&mut self, evicted: &Candidate, whole: bool) {
                (**self).evicted(evicted, whole);
            }

            fn split(&mut self, head: NodeId, tail: NodeId) {
                (**self).split(head, tail);
            }

            fn merge(&mut self, head: NodeId, tail: NodeId, head_blocks: u32) {
                (**self).merge(head, tail, head_blocks);
            }

            fn wants_path_nodes(&self) -> bool {
                (**self).wants_path_nodes()
            }

            fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
                (**self).observe(request, nodes);
            }
        }

        impl<P: AdmissionPolicy + ?Sized> AdmissionPolicy for $pointer {
            fn needs_rival(&self) -> bool {
                (**self).needs_rival()
            }

            fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
                (**self).admit(request, rival)
            }

            fn checkpoints(
                &mut self,
                request: &RequestView<'_>,
                insertion: PathInsertion,
                depths: &mut Vec<u32>,
            ) {
                (**self).checkpoints(request, insertion, depths);
            }

            fn on_evicted(&mut self, evicted: &Candidate) {
                (**self).on_evicted(evicted);
            }
        }
    )*};
}

forward!(&mut P, Box<P>);
