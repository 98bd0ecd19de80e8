//! Questions answered from retrieved passages.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};
use trace::Hints;

use super::Family;
use crate::apps::{self, Apps};
use crate::arrivals;
use crate::draw::Dist;
use crate::error::GenError;
use crate::params::{Param, Values, param};
use crate::script::{Call, Layout};
use crate::service::{self, Service};
use crate::world::{Out, Session, Source, Start};
use trace::synthetic::{Chains, Piece};

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
    params: &[arrivals::PARAMS, apps::PARAMS, PARAMS, service::PARAMS],
    defaults: &[
        ("sessions", "1000"),
        ("session-gap", "2"),
        ("apps", "1"),
        ("template-tokens", "800"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |values, rng, out| Ok(Box::new(Rag::read(values, rng, out)?)),
};

const PARAMS: &[Param] = &[
    param("corpus", "2000", "Passages that there are"),
    param(
        "passage-zipf",
        "1.0",
        "Exponent of the passages' Zipf popularity; 0: all alike",
    ),
    param("passage-tokens", "uniform(200,512)", "Tokens of a passage"),
    param(
        "passages",
        "uniform(3,6)",
        "Passages of a request, all different",
    ),
    param(
        "order",
        "retrieved",
        "retrieved (in the order in which they were drawn), or fixed (popular ones first)",
    ),
    param(
        "question-tokens",
        "lognormal(60,0.8)",
        "Tokens of the question",
    ),
    param(
        "output-tokens",
        "lognormal(250,0.7)",
        "Tokens of the answer",
    ),
];

struct Rag {
    apps: Apps,
    service: Service,
    corpus: Vec<Piece>,
    popularity: Zipf<f64>,
    passages: Dist,
    fixed: bool,
    question_tokens: Dist,
    output_tokens: Dist,
    /// What follows each beginning that sessions share.
    chains: BTreeMap<(usize, usize), Chains>,
}

impl Rag {
    fn read(values: &Values, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        let corpus = values.count("corpus", 1..=10_000_000)?;
        let tokens = values.dist("passage-tokens")?;
        let exponent = values.number("passage-zipf", 0.0..=100.0)?;
        Ok(Self {
            apps: Apps::read(values, rng, out)?,
            service: Service::read(values)?,
            corpus: (0..corpus)
                .map(|_| out.fresh.piece(tokens.some(rng)))
                .collect(),
            popularity: Zipf::new(f64::from(corpus), exponent)
                .map_err(|fault| values.refused("passage-zipf", &fault.to_string()))?,
            passages: values.dist("passages")?,
            fixed: values.word("order", &["retrieved", "fixed"])? == 1,
            question_tokens: values.dist("question-tokens")?,
            output_tokens: values.dist("output-tokens")?,
            chains: BTreeMap::new(),
        })
    }

    /// Different passages; of a corpus too small or too skewed fewer than asked.
    fn retrieve(&self, rng: &mut ChaCha8Rng) -> Vec<(u32, Piece)> {
        const TRIES: u32 = 20;
        let wanted = self.passages.count(rng).min(self.corpus.len() as u32);
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..wanted * TRIES {
            let passage = self.popularity.sample(rng) as u32 - 1;
            if found.len() < wanted as usize && !found.contains(&passage) {
                found.push(passage);
            }
        }
        if self.fixed {
            found.sort_unstable();
        }
        let piece = |passage: u32| (passage, self.corpus[passage as usize]);
        found.into_iter().map(piece).collect()
    }
}

impl Source for Rag {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out);
        let mut prompt = beginning.text;
        let passages = self.retrieve(&mut rng);
        let mut own = Chains::default();
        let chains = match beginning.shared {
            Some(shared) => self.chains.entry(shared).or_default(),
            None => &mut own,
        };
        chains.append(&mut prompt, &passages, &mut out.fresh);
        prompt.grow(self.question_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(2),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let call = Call {
            at_us: start.at_us,
            prompt: &prompt,
            output_tokens: self.output_tokens.some(&mut rng),
            kind: "question".into(),
            tool: None,
            parent: None,
        };
        layout.call(call, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
