//! Policies as values that can build themselves: what a run is given.

use std::fmt;
use std::sync::Arc;

use policy_api::{Policy, PrefillCost};

use crate::CacheConfig;

/// A cost model that runs of several threads share.
pub type SharedCost = Arc<dyn PrefillCost + Send + Sync>;

/// What a policy is built for.
#[derive(Clone)]
pub struct PolicyContext {
    /// The cache that it will drive.
    pub cache: CacheConfig,
    /// What prefill costs, for policies that try out what they would have saved. Without it they do not.
    pub cost: Option<SharedCost>,
    /// Seed of everything random.
    pub seed: u64,
}

impl PolicyContext {
    /// For a cache of which nobody says what prefill costs.
    pub fn new(cache: CacheConfig, seed: u64) -> Self {
        Self {
            cache,
            cost: None,
            seed,
        }
    }
}

/// What a policy may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The past only.
    Online,
    /// Also the declared hints of the trace. Scored on its own.
    Declared,
}

impl Track {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Online => "online",
            Self::Declared => "declared",
        }
    }
}

type Build = dyn Fn(&PolicyContext) -> Box<dyn Policy> + Send + Sync;

/// A policy that can build itself, once per run: an eviction and an admission policy of the registry, one object that is
/// both and shares its state, a module loaded at run time, or an object of another language.
///
/// ```
/// use cache::{PolicyFactory, Track};
/// # use policy_api::*;
/// # #[derive(Default)] struct Mine;
/// # impl EvictionPolicy for Mine {
/// #     fn offer(&mut self, _: &Candidate) {}
/// #     fn withdraw(&mut self, _: NodeId, _: WithdrawReason) {}
/// #     fn victim(&mut self) -> Option<Victim> { None }
/// #     fn evicted(&mut self, _: &Candidate, _: bool) {}
/// # }
/// # impl AdmissionPolicy for Mine {
/// #     fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 { request.held_blocks }
/// # }
/// let factory = PolicyFactory::new("mine", "mine", Track::Online, |_| Box::new(Mine));
/// assert_eq!(factory.eviction(), "mine");
/// ```
#[derive(Clone)]
pub struct PolicyFactory {
    eviction: String,
    admission: String,
    track: Track,
    build: Arc<Build>,
}

impl PolicyFactory {
    /// A policy under the names that reports give to its two halves.
    pub fn new(
        eviction: impl Into<String>,
        admission: impl Into<String>,
        track: Track,
        build: impl Fn(&PolicyContext) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Self {
        Self {
            eviction: eviction.into(),
            admission: admission.into(),
            track,
            build: Arc::new(build),
        }
    }

    /// Name of what evicts, with its parameters as written.
    pub fn eviction(&self) -> &str {
        &self.eviction
    }

    /// Name of what admits, with its parameters as written.
    pub fn admission(&self) -> &str {
        &self.admission
    }

    /// What it may see.
    pub fn track(&self) -> Track {
        self.track
    }

    /// Builds it.
    pub fn build(&self, context: &PolicyContext) -> Box<dyn Policy> {
        (self.build)(context)
    }
}

impl fmt::Debug for PolicyFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with admission {} ({})",
            self.eviction,
            self.admission,
            self.track.name()
        )
    }
}
