//! One agent becomes many.

use params::Params;
use rand_chacha::ChaCha8Rng;
use trace::Hints;
use trace::synthetic::Text;

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
    name: "multi-agent",
    summary: "A lead that hands tasks to workers with contexts of their own, waits for all, and goes on",
    about: "\
A session is one lead and its workers. The lead plans; workers begin with the workers' template, which all sessions of the \
application share, and a task; each goes some steps by itself, side by side with the others; when the last has ended, their \
reports join the lead's context, and the next round begins. A worker of the next round starts over. While the workers work \
the lead's context lies idle: its steps_to_next says for how many requests. For: long idle contexts that are surely wanted, \
and policies that read steps_to_next.",
    examples: &[
        "trace-gen multi-agent -o team.parquet --sessions 100 --workers 6 --worker-steps geometric(8)",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        TeamParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("session-gap", "20"),
        ("apps", "3"),
        ("template-tokens", "lognormal(5000,0.5)"),
        ("projects", "2"),
    ],
    source: |params, rng, out| Ok(Box::new(Teams::read(params, rng, out)?)),
};

parameters! {
    TeamParams {
        rounds: Dist, COUNT, "geometric(3)",
            "Rounds of a session";
        workers: Dist, COUNT, "uniform(2,5)",
            "Workers of a round";
        worker_steps: Dist, COUNT, "geometric(6)",
            "Steps of a worker";
        goal_tokens: Dist, TOKENS, "lognormal(800,0.8)",
            "Tokens of the lead's goal";
        task_tokens: Dist, TOKENS, "lognormal(400,0.7)",
            "Tokens of a worker's task";
        output_tokens: Dist, TOKENS, "lognormal(200,0.8)",
            "Tokens of an output";
        result_tokens: Dist, TOKENS, "lognormal(500,1.2)",
            "Tokens of a tool's result in a worker's context";
        tool_seconds: Dist, DIST, "lognormal(3,1.2)",
            "Seconds of a worker's tool";
        report_tokens: Dist, TOKENS, "lognormal(500,0.6)",
            "Tokens of a worker's report in the lead's context";
    }
}

struct Teams {
    leads: Apps,
    workers_of: Apps,
    service: Service,
    params: TeamParams,
}

impl Teams {
    fn read(params: &Params, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        Ok(Self {
            leads: Apps::read(params, rng, out)?,
            workers_of: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: TeamParams::read(params),
        })
    }
}

impl Source for Teams {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let lead = self.leads.pick(&mut rng, out)?;
        let worker = self.workers_of.pick(&mut rng, out)?;
        let mut context = lead.text;
        context.grow(self.params.goal_tokens.some(&mut rng), &mut out.fresh);
        let hints = |hints| Hints {
            priority: Some(1),
            ..hints
        };
        let rounds = self.params.rounds.some(&mut rng);
        let mut draft = Draft {
            family: self,
            layout: Layout::new(self.service, hints(lead.hints)),
            worker: worker.text,
            at_us: start.at_us,
            parent: None,
            rng,
        };
        for _ in 0..rounds {
            draft.lead(&mut context, Some("workers"), out);
            draft.layout.hints = hints(worker.hints);
            draft.work(&mut context, out);
            draft.layout.hints = hints(lead.hints);
        }
        draft.lead(&mut context, None, out);
        Ok(draft.layout.session(start.session_id))
    }
}

/// A session while it is laid out.
struct Draft<'a> {
    family: &'a Teams,
    layout: Layout,
    /// What every worker begins with.
    worker: Text,
    at_us: i64,
    parent: Option<usize>,
    rng: ChaCha8Rng,
}

impl Draft<'_> {
    fn lead(&mut self, context: &mut Text, tool: Option<&'static str>, out: &mut Out) {
        let call = Call {
            at_us: self.at_us,
            prompt: context,
            output_tokens: self.family.params.output_tokens.some(&mut self.rng),
            kind: "lead".into(),
            tool,
            parent: self.parent,
        };
        let done = self.layout.call(call, &mut out.fresh);
        *context = done.text;
        self.at_us = done.end_us;
        self.parent = Some(done.place);
    }

    /// The workers of a round side by side; the lead goes on, with their reports, when the last has ended.
    fn work(&mut self, context: &mut Text, out: &mut Out) {
        let (begins_us, lead) = (self.at_us, self.parent);
        let mut last = (begins_us, lead);
        for worker in 0..self.family.params.workers.some(&mut self.rng) {
            (self.at_us, self.parent) = (begins_us, lead);
            self.worker(worker, out);
            if self.at_us >= last.0 {
                last = (self.at_us, self.parent);
            }
            context.grow(
                self.family.params.report_tokens.some(&mut self.rng),
                &mut out.fresh,
            );
        }
        (self.at_us, self.parent) = last;
    }

    fn worker(&mut self, worker: u32, out: &mut Out) {
        let mut context = self.worker.clone();
        context.grow(
            self.family.params.task_tokens.some(&mut self.rng),
            &mut out.fresh,
        );
        let steps = self.family.params.worker_steps.some(&mut self.rng);
        for step in 1..=steps {
            let last = step == steps;
            let call = Call {
                at_us: self.at_us,
                prompt: &context,
                output_tokens: self.family.params.output_tokens.some(&mut self.rng),
                kind: format!("worker-{worker}").into(),
                tool: Some(if last { "report" } else { "tool" }),
                parent: self.parent,
            };
            let done = self.layout.call(call, &mut out.fresh);
            self.parent = Some(done.place);
            self.at_us = done.end_us;
            if !last {
                let seconds = self.family.params.tool_seconds.micros(&mut self.rng);
                self.at_us = self.at_us.saturating_add(seconds);
                context = done.text;
                context.grow(
                    self.family.params.result_tokens.some(&mut self.rng),
                    &mut out.fresh,
                );
            }
        }
    }
}
