//! Questions answered from retrieved passages.

use std::collections::BTreeMap;

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};
use trace::Hints;
use trace::synthetic::{Chains, Piece};

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::Dist;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{COUNT, TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "rag",
    summary: "Template, retrieved passages, question: passages are popular, but what counts is their order",
    about: "\
Every session is one request: the template, some passages of a corpus, and a question that is new. Passages come by Zipf \
popularity, the same passage has the same text wherever it stands, and the same passages in the same order are the same \
prefix; in another order only what stands before the first difference is. With order fixed, the popular passages stand \
first, and much more is shared than in the order of retrieval. For: sharing that ends at the first rare passage, and \
trees with very wide nodes.",
    examples: &[
        "trace-gen rag -o rag.parquet --sessions 5000 --order fixed",
        "trace-gen rag -o rag-tokens.parquet --tokens --passages 3 --corpus 100",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        RagParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("sessions", "1000"),
        ("session-gap", "2"),
        ("apps", "1"),
        ("template-tokens", "800"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| Ok(Box::new(Rag::read(params, rng, out)?)),
};

parameters! {
    RagParams {
        corpus: u32, Domain::Count(1, 10_000_000), "2000",
            "Passages that there are";
        passage_zipf: f64, Domain::Number(0.0, 100.0), "1.0",
            "Exponent of the passages' Zipf popularity; 0: all alike";
        passage_tokens: Dist, TOKENS, "uniform(200,512)",
            "Tokens of a passage";
        passages: Dist, COUNT, "uniform(3,6)",
            "Passages of a request, all different";
        order: String, Domain::Choice(&["retrieved", "fixed"]), "retrieved",
            "retrieved (in the order in which they were drawn), or fixed (popular ones first)";
        question_tokens: Dist, TOKENS, "lognormal(60,0.8)",
            "Tokens of the question";
        output_tokens: Dist, TOKENS, "lognormal(250,0.7)",
            "Tokens of the answer";
    }
}

struct Rag {
    apps: Apps,
    service: Service,
    params: RagParams,
    corpus: Vec<Piece>,
    popularity: Zipf<f64>,
    /// What follows each beginning that sessions share.
    chains: BTreeMap<(usize, usize), Chains>,
}

impl Rag {
    fn read(params: &Params, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        let own = RagParams::read(params);
        let apps = Apps::read(params, rng, out)?;
        let tokens = &own.passage_tokens;
        let piece = |_| out.fresh.piece(tokens.some(rng));
        let popularity = Zipf::new(f64::from(own.corpus), own.passage_zipf);
        Ok(Self {
            apps,
            service: Service::read(params),
            corpus: (0..own.corpus).map(piece).collect(),
            popularity: popularity.map_err(|fault| GenError::Parameter {
                name: "passage-zipf",
                found: own.passage_zipf.to_string(),
                expected: fault.to_string(),
            })?,
            params: own,
            chains: BTreeMap::new(),
        })
    }

    /// Different passages; of a corpus too small or too skewed fewer than asked.
    fn retrieve(&self, rng: &mut ChaCha8Rng) -> Vec<(u32, Piece)> {
        const TRIES: u32 = 20;
        let wanted = self
            .params
            .passages
            .count(rng)
            .min(self.corpus.len() as u32);
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..wanted * TRIES {
            let passage = self.popularity.sample(rng) as u32 - 1;
            if found.len() < wanted as usize && !found.contains(&passage) {
                found.push(passage);
            }
        }
        if self.params.order == "fixed" {
            found.sort_unstable();
        }
        let piece = |passage: u32| (passage, self.corpus[passage as usize]);
        found.into_iter().map(piece).collect()
    }
}

impl Source for Rag {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut prompt = beginning.text;
        let passages = self.retrieve(&mut rng);
        let mut own = Chains::default();
        let chains = match beginning.shared {
            Some(shared) => self.chains.entry(shared).or_default(),
            None => &mut own,
        };
        chains.append(&mut prompt, &passages, &mut out.fresh);
        prompt.grow(self.params.question_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(2),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let call = Call {
            at_us: start.at_us,
            prompt: &prompt,
            output_tokens: self.params.output_tokens.some(&mut rng),
            kind: "question".into(),
            tool: None,
            parent: None,
        };
        layout.call(call, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
