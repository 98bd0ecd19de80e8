//! Long texts read piece by piece.

use trace::Hints;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::Dist;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{COUNT, DIST, TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "scan",
    summary: "Corpora read chunk by chunk, in one pass or several: a flood that LRU lets in",
    about: "\
Every session reads a corpus: each request is the template and the next chunk, and asks for a short result. With one pass \
no chunk comes again, and all that a cache keeps of them is lost room. With several passes the chunks come again in the \
same order, a whole corpus apart: LRU hits nothing while the corpus is larger than the cache, though most of it could be \
kept. For: scan resistance, and the difference between recency and knowing better.",
    examples: &[
        "trace-gen scan -o scan.parquet --sessions 20 --chunks 500",
        "trace-gen scan -o loop.parquet --sessions 1 --chunks 400 --passes 5",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        ScanParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("sessions", "10"),
        ("session-gap", "600"),
        ("apps", "1"),
        ("template-tokens", "500"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| {
        Ok(Box::new(Scans {
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: ScanParams::read(params),
        }))
    },
};

parameters! {
    ScanParams {
        chunks: Dist, COUNT, "200",
            "Chunks of a corpus";
        chunk_tokens: Dist, TOKENS, "uniform(2000,4000)",
            "Tokens of a chunk";
        passes: Dist, COUNT, "1",
            "Times that a corpus is read";
        pause_seconds: Dist, DIST, "0.1",
            "Seconds from a request's end to the next";
        output_tokens: Dist, TOKENS, "lognormal(60,0.7)",
            "Tokens of the output";
    }
}

struct Scans {
    apps: Apps,
    service: Service,
    params: ScanParams,
}

impl Source for Scans {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let prompts: Vec<_> = (0..self.params.chunks.some(&mut rng))
            .map(|_| {
                let mut prompt = beginning.text.clone();
                prompt.grow(self.params.chunk_tokens.some(&mut rng), &mut out.fresh);
                prompt
            })
            .collect();
        let hints = Hints {
            priority: Some(0),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let (mut at_us, mut parent) = (start.at_us, None);
        for _ in 0..self.params.passes.some(&mut rng) {
            for prompt in &prompts {
                let call = Call {
                    at_us,
                    prompt,
                    output_tokens: self.params.output_tokens.some(&mut rng),
                    kind: "chunk".into(),
                    tool: None,
                    parent,
                };
                let done = layout.call(call, &mut out.fresh);
                parent = Some(done.place);
                at_us = done
                    .end_us
                    .saturating_add(self.params.pause_seconds.micros(&mut rng));
            }
        }
        Ok(layout.session(start.session_id))
    }
}
