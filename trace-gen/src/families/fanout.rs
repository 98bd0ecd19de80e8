//! Several requests off one parent.

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use trace::Hints;
use trace::synthetic::Text;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::Dist;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{COUNT, DIST, TOKENS, parameters};
use crate::script::{Call, Done, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "fanout",
    summary: "Rounds of requests side by side off one parent: best of n, or parallel tool calls",
    about: "\
A session's context grows by rounds. In a round of best-of-n the same prompt is sent n times at once, every answer is \
other text, and the context goes on with one of them: the other branches die. In a round of parallel calls one request \
decides on n calls; each is a request that reads the parent's whole path and adds its own instructions; when all have \
ended, their results join the parent's context. The branches of a round arrive together and are agents of their own. For: \
wide, short-lived branches, and prefixes with many children of which one matters.",
    examples: &[
        "trace-gen fanout -o best-of-8.parquet --mode best-of --branches 8",
        "trace-gen fanout -o calls.parquet --mode calls --branches uniform(1,6)",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        FanoutParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("apps", "3"),
        ("template-tokens", "lognormal(3000,0.5)"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| Ok(Box::new(Fanout::read(params, rng, out)?)),
};

parameters! {
    FanoutParams {
        mode: String, Domain::Choice(&["best-of", "calls"]), "best-of",
            "best-of (the same prompt several times), or calls (parallel tool calls, then a join)";
        branches: Dist, COUNT, "4",
            "Requests side by side";
        rounds: Dist, COUNT, "geometric(4)",
            "Rounds of a session";
        goal_tokens: Dist, TOKENS, "lognormal(600,0.8)",
            "Tokens of the first message";
        output_tokens: Dist, TOKENS, "lognormal(250,0.7)",
            "Tokens of an output";
        branch_tokens: Dist, TOKENS, "lognormal(150,0.7)",
            "calls: tokens that a branch adds to its parent's path";
        result_tokens: Dist, TOKENS, "lognormal(300,0.9)",
            "Tokens that join the context after a round, best-of; after each call, calls";
        pause_seconds: Dist, DIST, "lognormal(2,1)",
            "Seconds from the end of a round to the next";
    }
}

struct Fanout {
    apps: Apps,
    service: Service,
    params: FanoutParams,
}

impl Fanout {
    fn read(params: &Params, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        Ok(Self {
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: FanoutParams::read(params),
        })
    }
}

impl Source for Fanout {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut prompt = beginning.text;
        prompt.grow(self.params.goal_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(1),
            ..beginning.hints
        };
        let rounds = self.params.rounds.some(&mut rng);
        let mut draft = Draft {
            family: self,
            layout: Layout::new(self.service, hints),
            at_us: start.at_us,
            parent: None,
            rng,
        };
        for _ in 0..rounds {
            prompt = match self.params.mode == "calls" {
                true => draft.calls(&prompt, out),
                false => draft.best_of(&prompt, out),
            };
        }
        Ok(draft.layout.session(start.session_id))
    }
}

/// A session while it is laid out.
struct Draft<'a> {
    family: &'a Fanout,
    layout: Layout,
    at_us: i64,
    parent: Option<usize>,
    rng: ChaCha8Rng,
}

impl Draft<'_> {
    /// The same prompt several times; the first answer is the best. Returns the next prompt.
    fn best_of(&mut self, prompt: &Text, out: &mut Out) -> Text {
        let parent = self.parent;
        let branches = self.family.params.branches.some(&mut self.rng);
        let answers: Vec<Done> = (0..branches)
            .map(|branch| self.branch(branch, prompt, parent, out))
            .collect();
        self.join(&answers);
        let mut next = answers
            .into_iter()
            .next()
            .map_or_else(|| prompt.clone(), |best| best.text);
        next.grow(
            self.family.params.result_tokens.some(&mut self.rng),
            &mut out.fresh,
        );
        next
    }

    /// One request that decides on calls, the calls, and their results. Returns the next prompt.
    fn calls(&mut self, prompt: &Text, out: &mut Out) -> Text {
        let call = Call {
            at_us: self.at_us,
            prompt,
            output_tokens: self.family.params.output_tokens.some(&mut self.rng),
            kind: "parent".into(),
            tool: Some("calls"),
            parent: self.parent,
        };
        let parent = self.layout.call(call, &mut out.fresh);
        self.at_us = parent.end_us;
        let mut next = parent.text.clone();
        let mut answers = vec![];
        for branch in 0..self.family.params.branches.some(&mut self.rng) {
            let mut own = parent.text.clone();
            own.grow(
                self.family.params.branch_tokens.some(&mut self.rng),
                &mut out.fresh,
            );
            answers.push(self.branch(branch, &own, Some(parent.place), out));
            next.grow(
                self.family.params.result_tokens.some(&mut self.rng),
                &mut out.fresh,
            );
        }
        self.join(&answers);
        next
    }

    fn branch(&mut self, branch: u32, prompt: &Text, parent: Option<usize>, out: &mut Out) -> Done {
        let call = Call {
            at_us: self.at_us,
            prompt,
            output_tokens: self.family.params.output_tokens.some(&mut self.rng),
            kind: format!("branch-{branch}").into(),
            tool: None,
            parent,
        };
        self.layout.call(call, &mut out.fresh)
    }

    /// The next round comes when the last of these has ended.
    fn join(&mut self, answers: &[Done]) {
        if let Some(last) = answers.iter().max_by_key(|done| done.end_us) {
            let pause_us = self.family.params.pause_seconds.micros(&mut self.rng);
            self.at_us = last.end_us.saturating_add(pause_us);
            self.parent = Some(last.place);
        }
    }
}
