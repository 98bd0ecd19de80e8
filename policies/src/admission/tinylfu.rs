//! TinyLFU: admitted only in place of something asked for less often.
//!
//! The sketch counts every block of a path once per request, admitted or not, and forgets slowly. A count never grows along a path, so
//! the blocks that win are its leading ones:
//!
//! ```text
//!   path      a b c d       counts  5 4 2 1       the victim's first block: 2       admitted: a b
//! ```
//!
//! While there is room, all are admitted.

use policy_api::{AdmissionPolicy, Candidate, RequestView};

use crate::entry::{AdmissionEntry, Track};
use crate::parts::room::Room;
use crate::parts::sketch::Sketch;

pub(crate) const ENTRY: AdmissionEntry = AdmissionEntry {
    name: "tinylfu",
    summary: "admit blocks asked for more often than the next victim, by a sketch of counts",
    source: "Einziger, Friedman and Manes, TinyLFU: a highly efficient cache admission policy, ACM ToS 2017",
    idea: "What is admitted should have been asked for more often than what is evicted for it.",
    cost: "one count per block of the path",
    avoid_when: "most reuse is soon after the first use, as by the next turn of a conversation: a newcomer has one use, and is refused",
    params: &[],
    track: Track::Online,
    build: |context, _| {
        Box::new(TinyLfu {
            sketch: Sketch::new(context.cache.capacity_blocks()),
            room: Room::new(context.cache.capacity_blocks()),
        })
    },
};

struct TinyLfu {
    sketch: Sketch,
    room: Room,
}

impl AdmissionPolicy for TinyLfu {
    fn needs_rival(&self) -> bool {
        true
    }

    fn admit(&mut self, request: &RequestView<'_>, rival: Option<&Candidate>) -> u32 {
        self.sketch.add(request.path);
        let fits = self.room.fits(request);
        let rest = &request.path[fits as usize..];
        let wins = match rival {
            Some(rival) => {
                let to_beat = self.sketch.count(rival.first_block);
                rest.iter()
                    .take_while(|block| self.sketch.count(**block) > to_beat)
                    .count()
            }
            None => rest.len(),
        };
        let blocks = fits + wins as u32;
        self.room.admit(request, blocks);
        blocks
    }

    fn on_evicted(&mut self, _: &Candidate) {
        self.room.evicted();
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{admitted, asks};

    #[test]
    fn a_newcomer_must_beat_the_victim() {
        // The victim is b with one use: c is refused at first and comes in with its second; d does not beat a's two.
        let paths = asks(&["b", "a", "a", "c", "c", "d"]);
        assert_eq!(admitted("tinylfu", 2, &paths), [1, 1, 1, 0, 1, 0]);
    }

    #[test]
    fn leading_blocks_may_win_alone() {
        // The victim is z with two uses; x has three when "xyy" comes, its tail one.
        let paths = asks(&["z", "z", "x", "x", "xyy"]);
        assert_eq!(admitted("tinylfu", 1, &paths), [1, 1, 0, 0, 1]);
    }
}
