//! Single requests.

use trace::Hints;

use super::Family;
use crate::apps::{self, Apps};
use crate::arrivals;
use crate::draw::Dist;
use crate::error::GenError;
use crate::params::{Param, param};
use crate::script::{Call, Layout};
use crate::service::{self, Service};
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "oneshot",
    summary: "Single requests that share a short template and nothing else: what pollutes a cache",
    about: "\
Every session is one request: its application's template, then text that nobody else sends. Nothing but the template is \
ever read again (remaining_uses is 0). By default 3% of the prompt tokens repeat. For: admission policies, which should \
keep such requests out, and noise in a mixture.",
    examples: &["trace-gen oneshot -o oneshot.parquet --sessions 5000 --session-gap 0.5"],
    params: &[arrivals::PARAMS, apps::PARAMS, PARAMS, service::PARAMS],
    defaults: &[
        ("sessions", "1000"),
        ("session-gap", "1"),
        ("apps", "1"),
        ("template-tokens", "128"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |values, rng, out| {
        Ok(Box::new(Oneshots {
            apps: Apps::read(values, rng, out)?,
            service: Service::read(values)?,
            prompt_tokens: values.dist("prompt-tokens")?,
            output_tokens: values.dist("output-tokens")?,
        }))
    },
};

const PARAMS: &[Param] = &[
    param(
        "prompt-tokens",
        "lognormal(3000,0.7)",
        "Tokens after the template",
    ),
    param(
        "output-tokens",
        "lognormal(150,0.8)",
        "Tokens of the output",
    ),
];

struct Oneshots {
    apps: Apps,
    service: Service,
    prompt_tokens: Dist,
    output_tokens: Dist,
}

impl Source for Oneshots {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out);
        let mut prompt = beginning.text;
        prompt.grow(self.prompt_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(0),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let call = Call {
            at_us: start.at_us,
            prompt: &prompt,
            output_tokens: self.output_tokens.some(&mut rng),
            kind: "oneshot".into(),
            tool: None,
            parent: None,
        };
        layout.call(call, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
