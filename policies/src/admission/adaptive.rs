//! Refuse while refusing pays.
//!
//! ```text
//!   request ---> open shadow, takes everything                              hits --+
//!           ---> choosy shadow, takes what was asked for more often        hits --+--> lead: what the choosy one saved more
//!                than its next victim                                              |    of late
//!           ---> cache: lead > 0 ? what the choosy shadow takes : everything   <---+
//! ```
//!
//! Both shadows are LRU and of block ids only. So what is refused is learned of all the same: a block that is asked for again after
//! it was refused is a hit that the open shadow has and the choosy one has not. Refusing looks good at first, because what stays
//! is hit at once and what was refused is missed only later; so nothing is refused before twice the cache was admitted. Counts
//! are exact and halved when as many blocks were asked for as ten caches hold, which is TinyLFU's period. The lead is worth
//! half after another cache full of newcomers to the open shadow. Neither number is critical: half or twice of either changes
//! what is saved by less than three points anywhere on the workloads of `docs/policies.md`, and mostly by less than one.
//!
//! Tried and left out, since they gained nothing on average: the chance of reuse by kind and step as a second word in the contest,
//! admitting whatever goes on from a leaf, keeping residents for a fixed time in place of the contest, asking for a lead of
//! some per cent, and the cache itself in the place of the shadow that it follows. Without shadows, refusing by the
//! chance of reuse by kind and step lost to admitting everything on the average of each of these workloads.
//!
//! The shadows are LRU whatever evicts in the cache, and they hold no states. An eviction policy that finds out by itself what is
//! not worth its place gains less by refusing than they tell, and may lose up to two per cent of what it saves.

use std::sync::Arc;

use policy_api::{AdmissionPolicy, BlockId, Candidate, PrefillCost, RequestView};

use crate::entry::{AdmissionEntry, PolicyContext, Track};
use crate::parts::room::Room;
use crate::parts::shadow_lru::ShadowLru;
use params::{Domain, Param, Params};

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "adaptive",
    summary: "admit all, or only what was asked for more often than the victim: whichever saved more of late",
    source: "this project; contest: TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017); duel: Qureshi et al., Adaptive insertion \
             policies for high performance caching, ISCA 2007",
    idea: "Refusing pays on some traffic and costs on other, so try both on shadows of the cache that hold block ids only, and \
           do what saves more prefill. One shadow takes everything, the other what was asked for more often than what \
           would be evicted for it.",
    cost: "three loads and stores per block of the path; 16 bytes for every block ever seen",
    avoid_when: "sessions are long and the eviction policy predicts reuse: the shadows are LRU and overrate refusing",
    params: &[
        Param {
            name: "memory",
            default: "10",
            domain: Domain::Count(1, 1_000_000),
            help: "caches full of blocks asked for after which all counts are halved",
        },
        Param {
            name: "fade",
            default: "1",
            domain: Domain::Number(0.01, 1e6),
            help: "caches full of newcomers after which what one shadow saved more than the other is worth half",
        },
    ],
    track: Track::Online,
    build: |context, params| Box::new(Adaptive::new(context, params)),
};

/// So many caches full of newcomers must have been admitted before anything is refused: one fills the cache, one shows what is lost.
const CACHES_BEFORE_VERDICT: u64 = 2;

struct Adaptive {
    block_tokens: u32,
    capacity_blocks: u64,
    fade_blocks: f64,
    cost: Option<Arc<dyn PrefillCost + Send + Sync>>,
    counts: AskCounts,
    open: ShadowLru,
    choosy: ShadowLru,
    /// Blocks that the open shadow took in.
    newcomers: u64,
    /// Prefill that the choosy shadow saved more than the open one, of late: seconds, or tokens where nobody prices them.
    lead: f64,
    room: Room,
}

impl Adaptive {
    fn new(context: &PolicyContext, params: &Params) -> Self {
        let capacity_blocks = context.cache.capacity_blocks().max(1);
        let memory_caches = params.count("memory").unwrap_or(u64::MAX);
        Self {
            block_tokens: context.cache.block_tokens,
            capacity_blocks,
            fade_blocks: params.number("fade") * capacity_blocks as f64,
            cost: context.cost.clone(),
            counts: AskCounts::new(capacity_blocks.saturating_mul(memory_caches)),
            open: ShadowLru::new(context.cache.capacity_blocks()),
            choosy: ShadowLru::new(context.cache.capacity_blocks()),
            newcomers: 0,
            lead: 0.0,
            room: Room::new(context.cache.capacity_blocks()),
        }
    }

    /// The choosy shadow serves a path of which it holds so much. Returns how many leading blocks it lets be resident.
    fn choose(&mut self, path: &[BlockId], held: u32) -> u32 {
        let fresh = &path[held as usize..];
        let free = usize::try_from(self.choosy.free_blocks()).unwrap_or(usize::MAX);
        let wins = match self.choosy.victim() {
            Some(victim) => {
                let to_beat = self.counts.of(victim);
                let rest = fresh.iter().skip(free);
                rest.take_while(|block| self.counts.of(**block) > to_beat)
                    .count()
            }
            None => fresh.len(),
        };
        let blocks = held + free.saturating_add(wins).min(fresh.len()) as u32;
        self.choosy.admit(path, held, blocks);
        blocks
    }

    fn compare(&mut self, request: &RequestView<'_>, open_held: u32, choosy_held: u32) {
        let newcomers = request.path.len() as u32 - open_held;
        self.newcomers += u64::from(newcomers);
        self.lead *= (-f64::from(newcomers) / self.fade_blocks).exp2();
        if open_held != choosy_held {
            self.lead += self.left_over(request, open_held) - self.left_over(request, choosy_held);
        }
    }

    /// What prefill is left to do where so many leading blocks are held.
    fn left_over(&self, request: &RequestView<'_>, held: u32) -> f64 {
        let usable = request.prompt_tokens.saturating_sub(1) / self.block_tokens;
        let hit = held.min(request.prompt_blocks).min(usable);
        let total = u64::from(request.prompt_tokens);
        let cached = u64::from(hit) * u64::from(self.block_tokens);
        match &self.cost {
            Some(cost) => cost.prefill(total, cached).seconds,
            None => (total - cached) as f64,
        }
    }

    fn refuses(&self) -> bool {
        self.lead > 0.0 && self.newcomers >= CACHES_BEFORE_VERDICT * self.capacity_blocks
    }
}

impl AdmissionPolicy for Adaptive {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        let path = request.path.len() as u32;
        self.counts.add(request.path);
        let open_held = self.open.touch(request.path);
        self.open.admit(request.path, open_held, path);
        let choosy_held = self.choosy.touch(request.path);
        let chosen = self.choose(request.path, choosy_held);
        self.compare(request, open_held, choosy_held);
        let blocks = if self.refuses() {
            chosen.max(self.room.fits(request))
        } else {
            path
        };
        self.room.admit(request, blocks);
        blocks
    }

    fn on_evicted(&mut self, _: &Candidate) {
        self.room.evicted();
    }
}

/// How often blocks were asked for; halved now and then.
struct AskCounts {
    halve_after: u64,
    asked: u64,
    /// Per block its count, and the halvings when that was right.
    counts: Vec<(u32, u32)>,
}

impl AskCounts {
    fn new(halve_after: u64) -> Self {
        Self {
            halve_after,
            asked: 0,
            counts: Vec::new(),
        }
    }

    fn halvings(&self) -> u32 {
        (self.asked / self.halve_after) as u32
    }

    fn add(&mut self, path: &[BlockId]) {
        let halvings = self.halvings();
        for &block in path {
            if block.index() >= self.counts.len() {
                self.counts.resize(block.index() + 1, (0, 0));
            }
            self.counts[block.index()] = (self.of(block) + 1, halvings);
        }
        self.asked += path.len() as u64;
    }

    fn of(&self, block: BlockId) -> u32 {
        let (count, halvings) = self.counts.get(block.index()).copied().unwrap_or((0, 0));
        count.checked_shr(self.halvings() - halvings).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, admitted, asks};

    /// So many requests round and round over more single blocks than the cache of four holds.
    fn round_and_round(requests: usize) -> Vec<Ask> {
        asks(&["a", "b", "c", "d", "e", "f"])
            .into_iter()
            .cycle()
            .take(requests)
            .collect()
    }

    /// Every path twice in a row and never again.
    fn twice_each(paths: u32) -> Vec<Ask> {
        let path = |at: u32| char::from_u32(0x4e00 + at).unwrap().to_string();
        let twice: Vec<String> = (0..paths).flat_map(|at| [path(at), path(at)]).collect();
        asks(&twice)
    }

    #[test]
    fn what_goes_round_in_too_large_a_circle_is_held_in_part() {
        // Everything is asked for equally often, so that none beats another: the choosy shadow keeps a to d for good, the
        // open one hits nothing. With the seventh request the choosy one leads; with the eighth twice the cache has come.
        let admitted = admitted("adaptive", 4, &round_and_round(60));
        assert_eq!(admitted[..7], [1; 7]);
        let last_round: u32 = admitted[54..].iter().sum();
        assert_eq!(last_round, 4, "{admitted:?}");
    }

    #[test]
    fn where_the_new_is_what_comes_back_nothing_is_refused() {
        let asked = twice_each(100);
        assert!(
            admitted("adaptive", 4, &asked)
                .iter()
                .all(|blocks| *blocks == 1)
        );
        // The contest alone would refuse it: an old one has been asked for as often.
        assert!(admitted("tinylfu", 4, &asked).contains(&0));
    }

    #[test]
    fn the_guard_lets_everything_in_again_when_refusing_costs() {
        let mut asked = round_and_round(60);
        asked.extend(twice_each(60));
        let admitted = admitted("adaptive", 4, &asked);
        assert!(admitted[..60].contains(&0));
        assert!(admitted[60..90].contains(&0));
        assert!(
            admitted[90..].iter().all(|blocks| *blocks == 1),
            "{admitted:?}"
        );
    }

    #[test]
    fn counts_are_halved() {
        let mut counts = AskCounts::new(6);
        counts.add(&[0, 1].map(BlockId));
        counts.add(&[0, 1].map(BlockId));
        assert_eq!(counts.of(BlockId(1)), 2);
        counts.add(&[0, 2].map(BlockId));
        assert_eq!(
            [0, 1, 2, 3].map(|block| counts.of(BlockId(block))),
            [1, 1, 0, 0]
        );
    }
}
