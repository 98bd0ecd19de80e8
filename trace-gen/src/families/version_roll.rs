//! Templates that change under way.

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use trace::Hints;
use trace::synthetic::Text;

use crate::arrivals::ArrivalParams;
use crate::draw::{Dist, micros, unit};
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{DIST, TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "version-roll",
    summary: "An application whose template is edited again and again: what was popular dies at once",
    about: "\
All requests of a version share its template. Every now and then the template is edited: what stands before the edit \
stays, all after it is other text. The new version reaches a share of the requests that grows over the time of the \
roll-out; then the old one is never sent again. For: policies that count uses and go on keeping what has none to come, \
and the price of a date in a system prompt (edit-at 0).",
    examples: &[
        "trace-gen version-roll -o roll.parquet --roll-seconds 900 --rollout-seconds 120 --edit-at 0.1",
    ],
    params: &[ArrivalParams::PARAMS, RollParams::PARAMS, Service::PARAMS],
    defaults: &[("sessions", "2000"), ("session-gap", "2")],
    source: |params, rng, out| Ok(Box::new(Rolling::read(params, rng, out)?)),
};

parameters! {
    RollParams {
        template_tokens: u32, Domain::Count(1, 1 << 26), "12000",
            "Tokens of the template";
        roll_seconds: f64, Domain::Number(1e-3, 1e9), "1200",
            "Seconds from one version to the next";
        rollout_seconds: f64, Domain::Number(0.0, 1e9), "180",
            "Seconds over which a version comes into use";
        edit_at: Dist, DIST, "uniform(0,1)",
            "Where an edit begins, as a share of the template";
        prompt_tokens: Dist, TOKENS, "lognormal(400,0.8)",
            "Tokens after the template";
        output_tokens: Dist, TOKENS, "lognormal(150,0.8)",
            "Tokens of the output";
    }
}

struct Rolling {
    service: Service,
    params: RollParams,
    roll_us: i64,
    rollout_us: i64,
    /// The version before, and the present one.
    versions: [Version; 2],
    present: i64,
    edits: ChaCha8Rng,
}

#[derive(Clone)]
struct Version {
    template: Text,
    id: u64,
}

impl Rolling {
    fn read(params: &Params, rng: &ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        let own = RollParams::read(params);
        let mut template = out.fresh.empty_text();
        template.grow(own.template_tokens, &mut out.fresh);
        let version = Version {
            template,
            id: out.template_id(),
        };
        Ok(Self {
            service: Service::read(params),
            roll_us: micros(own.roll_seconds),
            rollout_us: micros(own.rollout_seconds),
            params: own,
            versions: [version.clone(), version],
            present: 0,
            edits: rng.clone(),
        })
    }

    fn roll(&mut self, out: &mut Out) {
        self.present += 1;
        let [_, present] = &self.versions;
        let mut template = present.template.clone();
        let edit_at = self.params.edit_at.draw(&mut self.edits).min(1.0);
        template.truncate((edit_at * f64::from(self.params.template_tokens)) as u32);
        template.grow(
            self.params.template_tokens - template.len_tokens(),
            &mut out.fresh,
        );
        let next = Version {
            template,
            id: out.template_id(),
        };
        self.versions = [present.clone(), next];
    }
}

impl Source for Rolling {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        while self.present < start.at_us / self.roll_us {
            self.roll(out);
        }
        let since_us = start.at_us % self.roll_us;
        let rolled_out = unit(&mut rng) * self.rollout_us as f64 <= since_us as f64;
        let version = &self.versions[usize::from(rolled_out)];
        let mut prompt = version.template.clone();
        prompt.grow(self.params.prompt_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(1),
            template_id: Some(version.id),
            template_tokens: Some(self.params.template_tokens),
            ..Hints::default()
        };
        let mut layout = Layout::new(self.service, hints);
        let call = Call {
            at_us: start.at_us,
            prompt: &prompt,
            output_tokens: self.params.output_tokens.some(&mut rng),
            kind: "request".into(),
            tool: None,
            parent: None,
        };
        layout.call(call, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
