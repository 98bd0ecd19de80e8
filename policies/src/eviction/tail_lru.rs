//! LRU that first evicts what the tail of the TTFT does not feel.
//!
//! The next turn is taken to be the path's last request, prompt and output, and as many tokens more as turns have added on
//! average; a token takes as long as the requests so far needed for one. What a leaf can spare is decided when it is offered:
//!
//! ```text
//!   |<----------------- path ----------------->|<-- growth -->|
//!   |  above the leaf  |  leaf   [   spare     |   budget     ]   the next turn recomputes as much within the threshold
//! ```
//!
//! Leaves with something to spare are evicted first, by last use; when there are none left it is LRU, as it is with a threshold of
//! zero.

use policy_api::{Candidate, NodeId, Ranked, RequestView};
use rustc_hash::FxHashMap;

use crate::entry::{BuildEviction, EvictionEntry, Track};
use crate::parts::keyed::{Keyed, LruOrder, Nodes, Rule, lru_order};
use crate::parts::per_request::PerRequest;
use params::{Domain, Param};

pub(crate) const ENTRY: EvictionEntry = EvictionEntry {
    name: "tail-lru",
    summary: "evicts first what no next turn needs to start within the threshold, then LRU",
    source: "Tail-Optimized LRU, 2025 (details ours)",
    idea: "A short recompute is not felt in the tail: every conversation gives what its next turn can recompute within the \
           threshold before any gives more.",
    cost: "O(log leaves) per offer, amortised",
    avoid_when: "the mean matters, not the tail: it gives up short prefixes that many would hit",
    params: &[Param {
        name: "threshold",
        default: "200ms",
        domain: Domain::Duration,
        help: "prefill time within which a next turn should start",
    }],
    track: Track::Online,
    build: BuildEviction::Alone(|context, params| {
        Box::new(Keyed::new(TailLru {
            block_tokens: context.cache.block_tokens,
            threshold_seconds: params.duration_us("threshold") as f64 / 1e6,
            ..TailLru::default()
        }))
    }),
};

#[derive(Default)]
struct TailLru {
    block_tokens: u32,
    threshold_seconds: f64,
    /// Prefill so far, and the tokens it was spent on.
    prefill_seconds: f64,
    prefill_tokens: f64,
    /// Prompt and output tokens of every request.
    tokens: PerRequest<u32>,
    /// Those of a session's latest.
    sessions: FxHashMap<u64, u32>,
    added_tokens: f64,
    turns: f64,
}

impl TailLru {
    /// Blocks of the leaf that the next turn can recompute, with what comes after them, within the threshold.
    fn spare_blocks(&self, leaf: &Candidate) -> u32 {
        if self.prefill_seconds <= 0.0 {
            return 0;
        }
        let budget_tokens = self.threshold_seconds * self.prefill_tokens / self.prefill_seconds;
        let growth_tokens = if self.turns > 0.0 {
            self.added_tokens / self.turns
        } else {
            0.0
        };
        let end_tokens = f64::from(leaf.depth_blocks + leaf.blocks) * f64::from(self.block_tokens);
        let next_tokens = f64::from(self.tokens.at(leaf.last_request)) + growth_tokens;
        let spare_tokens = budget_tokens - (next_tokens - end_tokens).max(0.0);
        // A cast from a negative float is 0.
        ((spare_tokens / f64::from(self.block_tokens)) as u32).min(leaf.blocks)
    }
}

impl Rule for TailLru {
    type Order = Ranked<(bool, LruOrder)>;
    /// Blocks of a leaf's tail that are not needed, if any.
    type State = u32;

    fn key(&mut self, leaf: &Candidate, nodes: &mut Nodes<Self>) -> (bool, LruOrder) {
        let spare = self.spare_blocks(leaf);
        nodes.states.put(leaf.id, spare);
        (spare == 0, lru_order(leaf))
    }

    fn blocks(&self, first: NodeId, nodes: &Nodes<Self>) -> u32 {
        match nodes.states.get(first) {
            Some(&spare) if spare > 0 => spare,
            _ => u32::MAX,
        }
    }

    fn observe(&mut self, request: &RequestView<'_>, _: &[Candidate], _: &mut Nodes<Self>) {
        let hit_tokens = request.hit_blocks * self.block_tokens;
        self.prefill_seconds += request.prefill.seconds;
        self.prefill_tokens += f64::from(request.prompt_tokens.saturating_sub(hit_tokens));
        let tokens = request.prompt_tokens.saturating_add(request.output_tokens);
        self.tokens.note(request.index, tokens);
        if let Some(before) = self.sessions.insert(request.session, tokens) {
            self.added_tokens += f64::from(request.prompt_tokens.saturating_sub(before));
            self.turns += 1.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{ask, assert_is_lru, victims};

    #[test]
    fn what_the_next_turn_can_recompute_goes_first() {
        // A token takes a second and prompts have one more than their blocks. With 3 seconds the youngest can give two
        // blocks as well as the oldest: both do before either gives more.
        let paths = [
            ask("abcd").session(1, 0),
            ask("efgh").session(2, 0),
            ask("ij").session(3, 0),
            ask("kl").session(4, 0),
        ];
        let spec = "tail-lru(threshold=3s)";
        assert_eq!(victims(spec, 8, &paths)[2..], ["dc", "hg"]);
        assert_eq!(victims("lru", 8, &paths)[2..], ["dc", "ba"]);
    }

    #[test]
    fn turns_that_grow_need_more() {
        // Session 1 grew by two tokens a turn, so of 4 seconds two are spoken for besides the token left over: it has one
        // block to give, and so has everybody else.
        let paths = [
            ask("ab").session(1, 0),
            ask("abcd").session(1, 1),
            ask("ef").session(2, 0),
            ask("gh").session(3, 0),
        ];
        assert_eq!(victims("tail-lru(threshold=4s)", 6, &paths)[3], "df");
    }

    #[test]
    fn without_a_threshold_it_is_lru() {
        assert_is_lru("tail-lru(threshold=0s)");
    }
}
