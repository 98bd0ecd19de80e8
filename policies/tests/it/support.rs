//! Small traces for the tests of policies: a path is a string, one letter a block of one token.

use std::collections::HashMap;

use cache::{Cache, CacheConfig, EvictUnit, Outcome};
use policy_api::{
    AdmissionPolicy, BlockId, Candidate, EvictionPolicy, Hints, NodeId, Policy, PrefillCost,
    Request, RequestView, StateBytes, Victim, WithdrawReason, Work,
};

/// Every token costs one second and one FLOP.
pub(crate) struct FlatCost;

impl PrefillCost for FlatCost {
    fn prefill(&self, total_tokens: u64, cached_tokens: u64) -> Work {
        let tokens = (total_tokens - cached_tokens) as f64;
        Work {
            seconds: tokens,
            flops: tokens,
        }
    }
}

/// One request. It arrives one second after the one before unless it says when, and all its path is prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask {
    path: String,
    arrival_us: Option<i64>,
    request: Request,
    hints: Option<Hints>,
}

pub(crate) fn ask(path: &str) -> Ask {
    Ask {
        path: path.to_owned(),
        ..Ask::default()
    }
}

pub(crate) fn asks<S: AsRef<str>>(paths: &[S]) -> Vec<Ask> {
    paths.iter().map(|path| ask(path.as_ref())).collect()
}

#[allow(
    dead_code,
    reason = "unit tests and integration tests use different ones"
)]
impl Ask {
    pub(crate) fn at_s(self, seconds: f64) -> Self {
        Self {
            arrival_us: Some((seconds * 1e6) as i64),
            ..self
        }
    }

    pub(crate) fn session(mut self, session_id: u64, step: u32) -> Self {
        self.request.session_id = session_id;
        self.request.step = step;
        self
    }

    pub(crate) fn kind(mut self, kind: u16) -> Self {
        self.request.kind = kind;
        self
    }

    pub(crate) fn tool(mut self, tool: u16) -> Self {
        self.request.tool = Some(tool);
        self
    }

    pub(crate) fn output_tokens(mut self, output_tokens: u32) -> Self {
        self.request.output_tokens = output_tokens;
        self
    }

    pub(crate) fn hints(self, hints: Hints) -> Self {
        Self {
            hints: Some(hints),
            ..self
        }
    }
}

/// A cache of blocks of one token and one byte.
pub(crate) fn config(
    capacity_bytes: u64,
    evict_unit: EvictUnit,
    state: Option<StateBytes>,
) -> CacheConfig {
    CacheConfig {
        capacity_bytes,
        block_bytes: 1,
        block_tokens: 1,
        evict_unit,
        state,
    }
}

/// Requests with their paths as dense ids in one arena.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) requests: Vec<Request>,
    arena: Vec<BlockId>,
    hints: Vec<Option<Hints>>,
    letters: Vec<char>,
    parents: Vec<Option<BlockId>>,
}

impl Trace {
    pub(crate) fn new(asks: &[Ask]) -> Self {
        let mut dense: HashMap<&str, BlockId> = HashMap::new();
        let mut trace = Self {
            requests: Vec::new(),
            arena: Vec::new(),
            hints: Vec::new(),
            letters: Vec::new(),
            parents: Vec::new(),
        };
        for (index, ask) in asks.iter().enumerate() {
            let path_start = trace.arena.len();
            let known = trace.letters.len() as BlockId;
            let mut seen_blocks = 0;
            let mut parent = None;
            for (at, letter) in ask.path.char_indices() {
                let fresh = trace.letters.len() as BlockId;
                let block = *dense
                    .entry(&ask.path[..at + letter.len_utf8()])
                    .or_insert(fresh);
                if block == fresh {
                    trace.letters.push(letter);
                    trace.parents.push(parent);
                }
                seen_blocks += u32::from(block < known);
                trace.arena.push(block);
                parent = Some(block);
            }
            let blocks = (trace.arena.len() - path_start) as u32;
            trace.requests.push(Request {
                request_id: index as u64,
                arrival_us: ask.arrival_us.unwrap_or(index as i64 * 1_000_000),
                prompt_tokens: blocks + 1,
                path_start,
                path_blocks: blocks,
                prompt_blocks: blocks,
                seen_blocks,
                ..ask.request
            });
            trace.hints.push(ask.hints);
        }
        trace
    }

    pub(crate) fn path(&self, request: &Request) -> &[BlockId] {
        &self.arena[request.path_range()]
    }

    pub(crate) fn cache(&self, capacity_blocks: u64, evict_unit: EvictUnit) -> Cache<'_> {
        self.cache_of(config(capacity_blocks, evict_unit, None))
    }

    pub(crate) fn cache_of(&self, config: CacheConfig) -> Cache<'_> {
        Cache::new(config, &self.arena, self.letters.len() as u32, &FlatCost)
    }

    pub(crate) fn serve(
        &self,
        index: usize,
        cache: &mut Cache<'_>,
        policy: &mut dyn Policy,
    ) -> Outcome {
        let hints = self.hints[index].as_ref();
        cache.serve(index as u32, &self.requests[index], hints, policy)
    }

    /// What goes at each request, in order: a letter a block.
    pub(crate) fn victims(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<String> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        let mut watched = Watched {
            policy,
            evicted: Vec::new(),
        };
        let victims = (0..self.requests.len())
            .map(|index| {
                self.serve(index, &mut cache, &mut watched);
                watched
                    .evicted
                    .drain(..)
                    .flat_map(|evicted| self.tail_first(evicted))
                    .collect()
            })
            .collect();
        assert_eq!(cache.first_fault(), None);
        victims
    }

    /// Blocks of the path that each request admits or holds.
    #[allow(dead_code, reason = "the integration tests look at victims only")]
    pub(crate) fn admitted(&self, capacity_blocks: u64, policy: &mut dyn Policy) -> Vec<u32> {
        let mut cache = self.cache(capacity_blocks, EvictUnit::Block);
        let admitted = (0..self.requests.len())
            .map(|index| {
                let outcome = self.serve(index, &mut cache, policy);
                outcome.held_blocks + outcome.counters.admitted_blocks as u32
            })
            .collect();
        assert_eq!(cache.first_fault(), None);
        admitted
    }

    fn tail_first(&self, evicted: Candidate) -> impl Iterator<Item = char> {
        std::iter::successors(Some(evicted.last_block), |block| {
            self.parents[*block as usize]
        })
        .take(evicted.blocks as usize)
        .map(|block| self.letters[block as usize])
    }
}

/// Notes what goes, and asks every question twice.
struct Watched<'p> {
    policy: &'p mut dyn Policy,
    evicted: Vec<Candidate>,
}

impl EvictionPolicy for Watched<'_> {
    fn offer(&mut self, candidate: &Candidate) {
        self.policy.offer(candidate);
    }
    fn withdraw(&mut self, id: NodeId, why: WithdrawReason) {
        self.policy.withdraw(id, why);
    }
    fn victim(&mut self) -> Option<Victim> {
        let victim = self.policy.victim();
        assert_eq!(self.policy.victim(), victim, "asked twice");
        victim
    }
    fn evicted(&mut self, evicted: &Candidate, whole: bool) {
        self.evicted.push(*evicted);
        self.policy.evicted(evicted, whole);
    }
    fn split(&mut self, head: NodeId, tail: NodeId) {
        self.policy.split(head, tail);
    }
    fn wants_path_nodes(&self) -> bool {
        self.policy.wants_path_nodes()
    }
    fn observe(&mut self, request: &RequestView<'_>, nodes: &[Candidate]) {
        self.policy.observe(request, nodes);
    }
}

impl AdmissionPolicy for Watched<'_> {
    fn needs_rival(&self) -> bool {
        self.policy.needs_rival()
    }
    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        self.policy.admit(request, rival)
    }
}
