//! Single requests.

use trace::Hints;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::Dist;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "oneshot",
    summary: "Single requests that share a short template and nothing else: what pollutes a cache",
    about: "\
Every session is one request: its application's template, then text that nobody else sends. Nothing but the template is \
ever read again (remaining_uses is 0). By default 3% of the prompt tokens repeat. For: admission policies, which should \
keep such requests out, and noise in a mixture.",
    examples: &["trace-gen oneshot -o oneshot.parquet --sessions 5000 --session-gap 0.5"],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        OneshotParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("sessions", "1000"),
        ("session-gap", "1"),
        ("apps", "1"),
        ("template-tokens", "128"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| {
        Ok(Box::new(Oneshots {
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: OneshotParams::read(params),
        }))
    },
};

parameters! {
    OneshotParams {
        prompt_tokens: Dist, TOKENS, "lognormal(3000,0.7)",
            "Tokens after the template";
        output_tokens: Dist, TOKENS, "lognormal(150,0.8)",
            "Tokens of the output";
    }
}

struct Oneshots {
    apps: Apps,
    service: Service,
    params: OneshotParams,
}

impl Source for Oneshots {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut prompt = beginning.text;
        prompt.grow(self.params.prompt_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(0),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let call = Call {
            at_us: start.at_us,
            prompt: &prompt,
            output_tokens: self.params.output_tokens.some(&mut rng),
            kind: "oneshot".into(),
            tool: None,
            parent: None,
        };
        layout.call(call, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
