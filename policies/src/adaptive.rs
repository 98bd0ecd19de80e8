//! Admit what is more likely to be used than what goes for it.
//!
//! Source: this project. Every request's fresh part is watched, admitted or not, until it is asked for again or given up;
//! so the chance of any reuse is learned by class (kind and step). The same is learned of the runs that are about to go. A
//! fresh part is admitted if its chance times its recompute per block is at least that of the present victim, so the
//! threshold follows what the cache really loses at its margin. While there is room, all is admitted.
//!
//! Watched is one block of each, the first that was not resident, for as long as four caches full of blocks are asked for.
//! Chances start as one observation of either outcome.
//!
//! Cost: one load a block of the path. Do not use it where class says nothing about reuse.

use std::collections::VecDeque;

use policy_api::{AdmissionPolicy, BlockId, Candidate, RequestView};

use crate::registry::{AdmissionEntry, Setup, Track};
use crate::room::Room;

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "adaptive",
    summary: "admit what is, by class, more likely to be used again than the next victim",
    source: "this project",
    idea: "Learn how often fresh parts of a class are asked for again, and how often what goes is; admit what is worth \
           more than the victim.",
    cost: "one load a block of the path",
    avoid_when: "class says nothing about reuse",
    params: &[],
    track: Track::Online,
    build: |setup, _| Box::new(Adaptive::new(setup)),
};

const KINDS: usize = 16;
const STEPS: usize = 8;
/// The class of what was about to go.
const VICTIM: usize = KINDS * STEPS;
const WATCHED_CACHES: u64 = 4;
/// What was learned fades, so that it follows the traffic: a count is worth half after so many more of its class.
const HALF_LIFE_COUNTS: f64 = 2_000.0;

#[derive(Clone, Copy)]
struct Outcomes {
    used: f64,
    lost: f64,
}

/// A block that is watched.
#[derive(Clone, Copy)]
struct Watch {
    block: BlockId,
    class: usize,
    until_blocks: u64,
}

struct Adaptive {
    block_tokens: u32,
    outcomes: Vec<Outcomes>,
    /// Per block the class it is watched for, counted from 1; 0 if it is not.
    watched_as: Vec<u16>,
    watches: VecDeque<Watch>,
    now_blocks: u64,
    patience_blocks: u64,
    room: Room,
}

impl Adaptive {
    fn new(setup: &Setup) -> Self {
        let unknown = Outcomes {
            used: 1.0,
            lost: 1.0,
        };
        Self {
            block_tokens: setup.block_tokens,
            outcomes: vec![unknown; VICTIM + 1],
            watched_as: Vec::new(),
            watches: VecDeque::new(),
            now_blocks: 0,
            patience_blocks: setup.capacity_blocks.saturating_mul(WATCHED_CACHES),
            room: Room::new(setup.capacity_blocks),
        }
    }

    fn chance(&self, class: usize) -> f64 {
        let Outcomes { used, lost } = self.outcomes[class];
        used / (used + lost)
    }

    fn note(&mut self, class: usize, used: bool) {
        let outcomes = &mut self.outcomes[class];
        let kept = (-1.0 / HALF_LIFE_COUNTS).exp2();
        outcomes.used = outcomes.used * kept + f64::from(u8::from(used));
        outcomes.lost = outcomes.lost * kept + f64::from(u8::from(!used));
    }

    /// What is asked for now was watched for nothing else.
    fn note_path(&mut self, path: &[BlockId]) {
        for &block in path {
            if let Some(class) = self.watched_as.get_mut(block as usize)
                && *class > 0
            {
                let class = usize::from(std::mem::take(class) - 1);
                self.note(class, true);
            }
        }
        self.now_blocks += path.len() as u64;
        while let Some(watch) = self.watches.front().copied()
            && watch.until_blocks < self.now_blocks
        {
            self.watches.pop_front();
            if std::mem::take(&mut self.watched_as[watch.block as usize]) == watch.class as u16 + 1
            {
                self.note(watch.class, false);
            }
        }
    }

    fn watch(&mut self, block: BlockId, class: usize) {
        if block as usize >= self.watched_as.len() {
            self.watched_as.resize(block as usize + 1, 0);
        }
        let slot = &mut self.watched_as[block as usize];
        if *slot == 0 {
            *slot = class as u16 + 1;
            self.watches.push_back(Watch {
                block,
                class,
                until_blocks: self.now_blocks + self.patience_blocks,
            });
        }
    }

    /// Chance times seconds per block, of the request's fresh part and of the victim.
    fn is_worth_it(&self, class: usize, request: &RequestView<'_>, rival: &Candidate) -> bool {
        let hit_tokens = request.hit_blocks * self.block_tokens;
        let new_tokens = request.prompt_tokens.saturating_sub(hit_tokens).max(1);
        let fresh_seconds =
            request.prefill.seconds / f64::from(new_tokens) * f64::from(self.block_tokens);
        let rival_seconds = rival.recompute.seconds / f64::from(rival.blocks);
        self.chance(class) * fresh_seconds >= self.chance(VICTIM) * rival_seconds
    }
}

fn class_of(request: &RequestView<'_>) -> usize {
    let kind = usize::from(request.kind).min(KINDS - 1);
    kind * STEPS + (request.step as usize).min(STEPS - 1)
}

impl AdmissionPolicy for Adaptive {
    fn needs_rival(&self) -> bool {
        true
    }

    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        self.note_path(request.path);
        let path = request.path.len() as u32;
        let fits = self.room.fits(request);
        let class = class_of(request);
        let blocks = match rival {
            Some(rival) if fits < path => {
                let worth_it = self.is_worth_it(class, request, rival);
                self.watch(rival.first_block, VICTIM);
                if worth_it { path } else { fits }
            }
            _ => path,
        };
        if let Some(&fresh) = request.path.get(request.held_blocks as usize) {
            self.watch(fresh, class);
        }
        self.room.admit(request, blocks);
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Ask, admitted, ask, setup, view};

    #[test]
    fn a_kind_that_does_not_come_back_is_refused() {
        // Kind 1 goes round in a loop of three, which all fit; kind 2 never comes back.
        let letter = |round: u32| char::from_u32(0x4e00 + round).unwrap().to_string();
        let mut paths: Vec<Ask> = Vec::new();
        for round in 0..200 {
            let path = ["a", "b", "c"][round as usize % 3];
            paths.push(ask(path).kind(1));
            paths.push(ask(&letter(round)).kind(2));
        }
        let admitted = admitted("adaptive", 4, &paths);
        assert!(admitted[200..].chunks(2).all(|pair| pair == [1, 0]));
    }

    #[test]
    fn what_is_watched_is_used_or_lost_once() {
        let mut policy = Adaptive::new(&setup(1, 0));
        policy.admit(&view(&[0]), None);
        policy.admit(&view(&[0]), None);
        let Outcomes { used, lost } = policy.outcomes[0];
        assert!(used > 1.99 && lost < 1.0, "{used} {lost}");
        policy.admit(&view(&[1, 2, 3, 4, 5, 6]), None);
        let Outcomes { used, lost } = policy.outcomes[0];
        assert!(used < 2.0 && lost > 1.9, "{used} {lost}");
    }
}
