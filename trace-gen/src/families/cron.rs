//! Jobs that come again and again.

use trace::Hints;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::{Dist, micros};
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{COUNT, DIST, TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "cron",
    summary: "Jobs that send the same prompt at regular times, far apart: reuse that LRU forgets",
    about: "\
Every session is a job: its template and instructions are the same each time it fires, followed by a little text that is \
new (the log since last time) and a short verdict. The period is long and almost exact, so a policy that learns it knows \
what comes; one that ranks by recency drops the prompt just before it is wanted. With fresh-tokens 0 and an output of one \
token the whole path is read again, and remaining_uses counts the firings left.",
    examples: &[
        "trace-gen cron -o cron.parquet --sessions 200 --period-seconds 3600 --firings 24",
        "trace-gen cron -o checks.parquet --fresh-tokens 0 --output-tokens 1",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        CronParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("arrivals", "uniform"),
        ("apps", "4"),
        ("template-tokens", "lognormal(1500,0.5)"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| {
        Ok(Box::new(Jobs {
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: CronParams::read(params),
        }))
    },
};

parameters! {
    CronParams {
        job_tokens: Dist, TOKENS, "lognormal(6000,0.5)",
            "Tokens of a job's instructions, the same at each firing";
        firings: Dist, COUNT, "20",
            "Times that a job fires";
        period_seconds: Dist, DIST, "oneof(300,600,900,3600)",
            "Seconds from one firing of a job to the next";
        jitter_seconds: Dist, DIST, "exp(2)",
            "Seconds that a firing is late";
        fresh_tokens: Dist, TOKENS, "lognormal(100,0.7)",
            "Tokens of a firing that are new";
        output_tokens: Dist, TOKENS, "lognormal(20,0.7)",
            "Tokens of the output";
    }
}

struct Jobs {
    apps: Apps,
    service: Service,
    params: CronParams,
}

impl Source for Jobs {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut job = beginning.text;
        job.grow(self.params.job_tokens.some(&mut rng), &mut out.fresh);
        let period_seconds = self.params.period_seconds.draw(&mut rng);
        let hints = Hints {
            priority: Some(0),
            // The instructions are as fixed as the template.
            template_id: Some(out.template_id()),
            template_tokens: Some(job.len_tokens()),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let mut parent = None;
        for firing in 0..self.params.firings.some(&mut rng) {
            let mut prompt = job.clone();
            prompt.grow(self.params.fresh_tokens.count(&mut rng), &mut out.fresh);
            let due_us = start
                .at_us
                .saturating_add(micros(period_seconds * f64::from(firing)));
            let late_us = if firing == 0 {
                0
            } else {
                self.params.jitter_seconds.micros(&mut rng)
            };
            let call = Call {
                at_us: due_us.saturating_add(late_us),
                prompt: &prompt,
                output_tokens: self.params.output_tokens.some(&mut rng),
                kind: "job".into(),
                tool: None,
                parent,
            };
            parent = Some(layout.call(call, &mut out.fresh).place);
        }
        Ok(layout.session(start.session_id))
    }
}
